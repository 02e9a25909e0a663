// Package pendingack knows which messages of one subscription are acknowledged in transactions that have not ended. It is
// pure.
//
// A message is held by at most one transaction through individual acknowledgements: a whole entry by one, the indexes of a
// batch by several, each its own. At most one transaction holds a cumulative acknowledgement, of everything up to its
// position. Both kinds are independent: an individual hold below or above a cumulative one is accepted.
//
// Held messages are given to nobody (O-8). The end of a transaction returns exactly what it held: a commit puts that into the
// cursor, an abort gives it back. What is acknowledged outside transactions meanwhile is done in the cursor and stays so,
// whatever the transaction does.
//
// Source of the conflict rules: PendingAckHandleImpl.individualAcknowledgeMessage and cumulativeAcknowledgeMessage, and what a broker
// of version 4.0.7 does.
//
// # Stored form
//
// One key holds what the acknowledgements of one transaction in one group commit added:
//
//	byte     1, version of this layout
//	uvarint  number of holds, each:
//	  byte     flags: 1 cumulative, 2 indexes of a batch
//	  8 bytes  ledger, 8 bytes entry, big endian
//	  uvarint  batch size, then the acknowledged indexes in words of 8 bytes, little endian (only with flag 2)
package pendingack
