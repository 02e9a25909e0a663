package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// Authenticator decides who a connection acts for.
type Authenticator interface {
	// Authenticate returns the caller of every later command of the connection that sent cmd. An error refuses the
	// connection; its text goes to the client. It must not block on the network: it runs in the connection's reader.
	Authenticate(cmd *pulsarproto.CommandConnect) (Caller, error)
}
