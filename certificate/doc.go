// Package certificate holds the server's certificate and the authorities that clients' certificates are judged by, and makes
// the TLS settings of a port of them. Files are PEM.
//
// Invariants:
//
//   - A connection sees a certificate and a key that belong together, whatever is being written to the files meanwhile.
//   - Files that cannot be used change nothing: what was read before stays, and the log says so once for each such state.
//   - A client certificate that is shown has to verify before the handshake is done, unless settings allow otherwise; who is
//     authenticated by it is verified once more, by the authorities of that moment.
//
// No session is ever resumed: a handshake that is skipped would be judged by files of the past.
package certificate
