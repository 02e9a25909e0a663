// Package crash holds the tests that kill a server. Clients, the official one and a raw one, run transactions over several
// topics and subscriptions against a process that is ended with SIGKILL again and again and started on the same data;
// package history judges everything that they saw. Beside the transactions a producer sends again what got no receipt, producers
// fence each other, consumers share keys, and topics come and go.
//
// go test runs a short version. With -kills and -everywhere it is the whole one, as ./test crash runs it.
package crash
