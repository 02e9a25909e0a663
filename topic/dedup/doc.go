// Package dedup knows which sequence ids of which producers a topic has stored. It is pure.
//
// A topic that deduplicates keeps, for each producer name, the highest sequence id that is stored for good; a send whose lowest
// id is not above it is a duplicate. What an open transaction stored is kept apart: a commit makes it good, an abort forgets it, so
// a sequence id that only an aborted transaction used is free again, unless a higher one of the same producer became good
// meanwhile. The fate of an id at or below one that another open transaction has stored is unknown.
//
// Names are stored in pages of a few, so that producers that began together are written together: one write of a topic changes a
// page or two, however many producers it has. A page has version byte 1, then for each name: uvarint length, name, uvarint highest
// sequence id, uvarint time of last use in minutes of unix time. A Draft is what one write changes; Apply takes it over when the
// write is durable.
//
// Source of the rules: pip/pip-6.md; MessageDeduplication.isDuplicate, which tests the lowest sequence id of a batch against
// the highest that is stored.
package dedup
