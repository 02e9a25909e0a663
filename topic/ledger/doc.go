// Package ledger holds positions in a topic's log, sets of positions and of batch indexes, and the stored form of entries.
// It is pure: bytes and order, no storage.
//
// A position is ledgerID:entryID. A ledger is one load of a topic: its id is unique in the store and grows from load to
// load, its entries are numbered from 0. So position order is log order, and a position is never used twice, also when an
// abort deleted what had it. Ranges are half-open, and the position behind the last entry of one ledger lies directly before
// everything of the next ledger, so neighbouring ranges join over ledgers without knowing where a ledger ends.
//
// # Stored block
//
// A block is a run of entries of one transaction, or of none, that one group commit wrote. Its entries have consecutive ids;
// its key names the last one, so that the block with position p is the first key at or behind p.
//
//	byte     1, version of this layout
//	byte     flags: 1 the entries belong to a transaction
//	16 bytes TxnID, most then least, big endian (only with flag 1)
//	uvarint  milliseconds since the epoch at which the block was written
//	uvarint  number of entries
//	entries, each:
//	  byte     flags: 1 batch, 2 chunk
//	  uvarint  sequence id
//	  uvarint  highest sequence id
//	  uvarint  number of messages
//	  uvarint  publish time, milliseconds since the epoch
//	  uvarint  length of the producer name, then the name
//	  uvarint  length of the payload, then the payload as received
//	4 bytes  CRC32C of everything before, big endian
//
// The TxnID is the one of CommandSend; what MessageMetadata says about transactions is never looked at (O-7).
package ledger
