// Package cleaning decides what of the oldest part of a coordinator's log must be written again at its head before that
// part may be dropped. It is pure: the state machine knows what is live, the driver reads and writes.
//
// The log is cleaned from its old end only, so no record is ever dropped while an older one of the same transaction could
// still be replayed (TC-19). What is carried is the whole state of a live transaction, as one SNAPSHOT, and each outcome that
// is still held, as one OUTCOME; everything else of the prefix is dead. A FORGET concerns only records before it, which go
// with it.
package cleaning
