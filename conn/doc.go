// Package conn is the edge of the binary protocol: it accepts connections, speaks Pulsar's frames on them and calls the
// services that do the work. It decides nothing about transactions or topics.
//
// A connection (cnx) is one reader and one writer with a bounded outbox between them. The reader decodes a command and
// hands it to a service; the answer is encoded into the outbox by whoever finished the work, which never blocks. The writer
// takes everything that waits at once, so answers that end together leave in one write.
//
// Invariants:
//   - Every accepted request that carries a request id is answered exactly once, unless its connection ends first (TC-5).
//   - Answers leave in the order in which the work ended (TC-4); receipts of one producer in the order of its sends.
//   - What one peer makes this process hold is bounded: the frame being read, the outbox, and the number and bytes of
//     unanswered requests and sends. At a bound the connection is not read, and a peer that does not read is closed.
//   - Connections wait for each other only where all of them share a bound: for the bytes of unanswered sends, and for lists
//     of topics. What holds the place goes on without its peer, and a connection without unanswered sends is always read.
//   - No connection keeps a goroutine after its end.
package conn
