// Package history records what clients of a server saw and judges it against the promises of the product.
//
// Every operation has a call and a return. One without a definite answer (a lost connection, a time limit, an error that asks
// for a repetition) is Unknown: it may have taken effect, may take effect at any later time, or never.
//
// What is checked:
//
//   - Per transaction, with porcupine: the answers are those of one register that a transaction is, opened, decided once, and
//     never contradicted (promises 1 and 2). A deadline may abort from the time to live on, and not before. An outcome
//     may be forgotten from its retention on, and not before.
//   - No id is given twice, and they grow (promise 5).
//   - Every transaction has an outcome in the end, and none is live (promise 6).
//   - What readers see in the end: of a committed transaction every message that got its receipt, on all topics, once; of an
//     aborted one nothing; of plain messages every one that got its receipt (promise 3).
//   - What subscriptions still hold in the end: nothing that was acknowledged for good, everything that was not.
//
// The package knows no server: whoever records says what was asked and what was answered.
package history
