// Package crashpoint kills processes at every store effect of every scenario of a bounded space, lets their successors recover,
// and checks what clients were told, what readers see and what is stored.
//
// A run is the product's own coordinator, log, election, sessions and topics on package etcdmodel, in a testing/synctest bubble:
// time is virtual, and effects happen one at a time, in the order of their descriptions where several wait. An effect is a request
// that changes the store when its turn comes. The same run has the same effects in the same order (TestRunsRepeat).
//
// # The space
//
// A scenario is a deployment, up to three transactions with a plan each, and how they lie to each other in time.
//
//   - Together: coordinator and topics are one process on a store of its own, which makes decision, participants and outcome of a
//     commit durable at once where it can. Shared: the same on a store of others, where the coordinator is led under a lease and
//     the topics are owned under that of a session. Apart: coordinator and topics are a process each; each dies alone, and
//     participants are called and answer separately.
//   - A plan says for each of three participants (two topics that are sent to, a subscription whose messages are acknowledged)
//     whether the transaction leaves it alone, ADDs it, writes to it without an ADD, or both; and how it ends: by END with commit
//     or abort, or by its deadline, and then nothing, or the same END again or the contrary one, behind the answer or at once.
//   - Transactions are side by side (all first operations at once, then all second ones, and so on), nested, or in turn.
//   - An ACK is of one message, or cumulative: of the messages of the transactions before it, too.
//
// A death is of the process that asks for an effect: before it happens, after it happened but before anybody hears of it, and, but
// for Together, late: all that the process asked of the store happens when its successor has come to a given point.
// The last effect behind which a process dies is the last one of the scenario, since every process is killed in the end as well.
// Clients live on: they ask again for what has no definite answer, as clients do, except for SEND and ACK, which are not the same
// when repeated.
//
// The parts of the space, each exhaustive (parts in space.go; the two topics are alike, so of two scenarios that differ only in
// which is which, one is taken; each scenario in which several effects wait at once is also run in the opposite order):
//
//   - one transaction, every use of every participant and every ending; late at 0, 2, 3 and 8 (Kill.Late).
//   - one transaction, every set of participants that are written to, every way to end, and ENDs that meet; then the successor is
//     killed at every one of its effects, too; late at 8.
//   - two transactions, every pair of such sets and ways to end, side by side and nested; late at 8.
//   - three transactions, every choice of nine plans, side by side and nested; late at 8.
//   - two transactions with cumulative ACKs, one of them or both sending as well, every plain ending, in every course; late at 0, 3
//     and 8.
//
// # What is checked
//
// Package history judges answers, deliveries and what is there in the end. Beside it, directly (check.go): all answers to the ENDs
// of a transaction agree, a repetition in the end gets the same outcome, every participant shows that outcome and no other, ids
// are given once, nothing is live after all deadlines and a bound, and no key of a transaction is left.
//
// An everyday test takes every 23rd scenario (every 97th with the race detector), and of its deaths every 7th; with -everything it
// is the whole space.
package crashpoint
