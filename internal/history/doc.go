// Package history records what clients, readers and participants of servers saw and judges it against the promises of the
// product.
//
// Every operation has a call and a return. One without a definite answer (a lost connection, a time limit, an error that asks
// for a repetition) is Unknown: it may have taken effect, may take effect at any later time, or never.
//
// What is checked:
//
//   - Per transaction: everything seen of it is what one register shows that is opened, decided once and perhaps forgotten, and
//     changes in no other way (promises 1 and 2). Answers show it, looks, the decisions that participants were told, the low
//     water marks with them, and messages that were delivered. A deadline may abort from the time to live on, and not before. An
//     outcome may be forgotten from its retention on, and not before. The three moments of a register are searched directly, in
//     linear time; what that finds wrong, porcupine confirms by its search over the same steps.
//   - No id is given twice, and they grow (promise 5).
//   - When END answers success, every participant has applied the decision (promise 3).
//   - Every transaction has an outcome in the end, and none is live (promise 6).
//   - What a transaction sent is there in the end with all that got its receipt, on all topics, once, or with nothing: a committed
//     one with all, an aborted one with nothing. Plain messages that got their receipt are there. What was delivered once stays.
//   - What subscriptions still hold in the end: nothing that was acknowledged for good, everything that was not.
//
// An anomaly tells what was seen of its transaction, an operation a line. Its order among others depends on the history alone.
//
// The package knows no server: whoever records says what was asked and what was answered.
package history
