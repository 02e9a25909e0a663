package conn

import (
	"crypto/x509"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Authenticator decides who a connection acts for. Methods run in the connection's reader and must not block on the network.
// The text of an error goes to the client, what it wraps to the log. certificates are those of the client's TLS handshake,
// its own first, with no judgement on who stands behind them.
type Authenticator interface {
	// Login returns who every later command of the connection that sent cmd acts for. An error refuses the connection.
	Login(certificates []*x509.Certificate, cmd *pulsarproto.CommandConnect) (cnx.Identity, error)
	// Refresh judges the answer to AUTH_CHALLENGE. The caller stays the same; an error ends the connection.
	Refresh(identity cnx.Identity, certificates []*x509.Certificate, data *pulsarproto.AuthData) (cnx.Identity, error)
}

// Instances tells connections of other instances of the cluster from those of clients.
type Instances interface {
	// Admit returns the caller whom a connection speaks for if an instance opened it; whoever that instance authenticated counts
	// here, too. An error refuses the connection, which pretends to be one.
	Admit(cmd *pulsarproto.CommandConnect) (caller Caller, instance bool, err error)
}
