// Package recorder plays scenarios of transaction commands against a server of Pulsar's protocol and records every answer as
// a line: scenario, step, request, answer. What differs from run to run (ids, positions, ports, names of the run) is replaced
// by symbols, so that two recordings can be compared.
//
// testdata/observed-pulsar-4.0.7.tsv is what Apache Pulsar 4.0.7 answered. testdata/differences.tsv lists every line in which
// ours differs, with the requirement that makes the difference ours; "later" names a surface that is not there yet. The tests
// start the server binary that the flag -server names and fail at a difference that is not listed.
//
// Crash pairs are the scenarios N1/N2, P1/P2 and P3/P4 of the table's origin: transactions end, the server is killed with
// SIGKILL, and what was answered before must still be true afterwards.
package recorder
