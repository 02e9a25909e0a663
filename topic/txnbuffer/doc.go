// Package txnbuffer knows the unresolved transactions of one topic and how far the topic may be read. It is pure.
//
// A transaction is unresolved from its first stored entry until its end is applied: after a commit when the mark of the
// transaction is deleted, after an abort when its last entry is. Nothing at or behind the first entry of the oldest
// unresolved transaction may be read by anybody, so the reader of a log never meets an entry whose fate is open or that is
// half deleted.
//
// Nothing is remembered of ended transactions. So an end of a transaction that is not here changes nothing, also a contrary
// one that comes after the first was applied; while an end is being applied, a contrary one is refused (O-6).
package txnbuffer
