// Package workload is clients at work on a cluster that fails: the official one and a raw one run transactions over several topics
// and subscriptions; beside them a producer sends again what got no receipt, producers fence each other, consumers share keys,
// and topics come and go. Everything that they see goes to package history, and when they have stopped, they ask how everything
// ended.
//
// The package knows addresses and no processes: whoever uses it kills, pauses and cuts.
package workload
