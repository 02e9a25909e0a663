// Package txn holds the value types that every part of the coordinator and its participants share: transaction ids,
// states, participants, log records, and the errors a request can end in. It has no behaviour of its own beyond text and
// order, and imports nothing of this module.
package txn
