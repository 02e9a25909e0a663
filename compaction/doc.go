// Package compaction decides what of a topic stays when it is compacted: of each key the newest message, unless that one is a
// tombstone. It is pure: the topic reads the entries, twice, and stores what is kept.
//
// The first pass notes the newest message of each key, the second keeps what the first has noted. Entries come in order and
// are the same in both passes. Memory follows the live keys, not the entries: a tombstone takes its key out of memory.
//
// A batch is kept as one entry with its position, as long as one of its messages stays; those that go leave a placeholder
// (compacted_out), so that batch indexes do not move, unless that makes a large payload larger. What cannot be looked into, an
// encrypted batch or one that does not decode, is kept whole. Chunks of one message stay or go together, and stay while their last
// one has not come. A message is told by its uuid and its first chunk; chunks without a first one are no message.
//
// Source: PhasedStrategicCompactor and TwoPhaseCompactor, RawBatchConverter.
//
// The stored form of kept entries is a block (EncodeBlock): version byte 1, then per entry, all numbers big endian: ledger and
// entry id, 8 bytes each; length of the entry's own block, 4 bytes; that block, as package topic/ledger writes it; number of
// words of the bits of the indexes that are gone, 4 bytes, and the words, 8 bytes each. Each entry has a checksum in its block.
package compaction
