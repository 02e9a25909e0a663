// Package schema is the schemas of topics as values: what a schema is, when its definition is sound, when two are the same,
// and which may follow which. It stores nothing; package schema/registry does.
//
// A schema that is stored, a version, has this layout: a byte 1; then, each a uvarint or bytes behind a uvarint of their length: type
// (zigzag), milliseconds since 1970, user, data, number of properties, and per property, sorted by key, key and value.
package schema
