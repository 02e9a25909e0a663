// Package preserver keeps the outcomes of ended transactions, so that a client that lost the answer to its END_TXN can ask
// again and hear the truth (PIP-255). It is a pure index in memory: the coordinator's state machine owns it, the log stores
// what is in it, and a load rebuilds it from the log.
//
// Outcomes are found by transaction id (P-11). They are kept in buckets, one per owner and client name, plus one per owner
// for transactions without a client name; the bucket alone decides how long an outcome stays (P-27):
//
//   - the newest Count of a bucket stay for Retention after they ended (P-24);
//   - older ones stay as long as they are younger than MinTime, so that a busy name does not forget within a second;
//   - above Max in total the bucket that exceeds its count by most loses its oldest first, and only when none exceeds its
//     count the largest loses: one flooding name never costs a quiet one its outcomes.
//
// Invariants: within a bucket outcomes are in the order in which they ended, Place grows and Ended never falls; what Get
// shows is cut exactly by count and time, whether or not the memory is reclaimed yet.
package preserver
