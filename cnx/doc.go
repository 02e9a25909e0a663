// Package cnx holds what a connection and a topic hand each other: who called, messages in and out, refusals, and the two ends
// of a producer and of a consumer. It has no behaviour; package conn implements the client ends, package topic the others, and
// neither needs to know the other.
package cnx
