// Package schema is the schemas of topics as values: what a schema is, when its definition is sound, when two are the same,
// and which may follow which. It stores nothing; package schema/registry does.
//
// Avro definitions are parsed and compared by github.com/twmb/avro, by the letter of Avro's rules. Pulsar's library is looser: it takes
// defaults that do not fit their field's type, does not compare the names of records outside unions, and ignores scale and precision
// of decimals. The first is refused here as an invalid schema, the other two as incompatible ones, unless the strategy is
// ALWAYS_COMPATIBLE.
//
// A schema that is stored, a version, has this layout: a byte 1; then, each a uvarint or bytes behind a uvarint of their length: type
// (zigzag), milliseconds since 1970, user, data, number of properties, and per property, sorted by key, key and value.
package schema
