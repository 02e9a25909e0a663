// Package cursor is what one subscription has acknowledged: a frontier, everything before which is done, single entries
// done behind it, and batches of which a part is done. It is pure.
//
// Done means acknowledged, or known to hold no message (an aborted transaction's entries were deleted there, or a ledger
// ended): so the frontier passes over what nobody will ever be given.
//
// # Stored form
//
// Holes behind the frontier are stored in buckets of 1024 entries of one ledger, each a key of its own with a bitmap, so that
// one acknowledgement writes at most one bucket however many holes there are. Buckets that the frontier has passed go with
// one range delete.
//
//	frontier  version byte 1, ledger, entry: 8 bytes each, big endian
//	bucket    bitmap of done entries, bit i of byte i/8 is entry bucket*1024+i; zero bytes at the end are left out
//	partial   version byte 1, uvarint batch size, then the acknowledged indexes in words of 8 bytes, little endian
package cursor
