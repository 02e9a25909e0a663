package authentication

import (
	"crypto/x509"
	"time"
)

// Credentials are what a client shows. Providers keep none of it.
type Credentials struct {
	Data         []byte              // auth_data of the protocol; on HTTP what the Authorization header holds
	Certificates []*x509.Certificate // the client's chain, its own first; whoever sent it has the key, no more is known
}

// Proof is what credentials proved.
type Proof struct {
	Role    string    // never empty
	Expires time.Time // zero: never
}

// Provider is one way to prove a role.
type Provider interface {
	// Method is auth_method_name of the protocol.
	Method() string
	// Authenticate judges credentials at time now. Errors: *Refused.
	Authenticate(now time.Time, credentials Credentials) (Proof, error)
}

// The methods of the providers here.
const (
	methodTLS   = "tls"
	methodToken = "token"
	methodBasic = "basic"
)
