package cnx

import "time"

// Caller is who sent a command. The zero Caller is everybody where authentication is off.
type Caller struct {
	Role  string // behind a proxy: the original principal
	Proxy string // role of the proxy that spoke for Role; empty: none
	Known bool   // authentication gave a role
	Super bool   // may act on everybody's transactions and topics: Role is a super user, and Proxy too if there is one
}

// Identity is what a login proved.
type Identity struct {
	Caller Caller
	// Expires is when the credentials end; zero: never.
	Expires time.Time
	// Method names the credentials that a refresh can bring anew, as CommandAuthChallenge spells it. Empty: none can, the
	// connection ends with them.
	Method string
}
