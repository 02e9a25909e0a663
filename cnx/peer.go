package cnx

// Peer is the client at the other end of a connection, as stats show it.
type Peer struct {
	Address       string // host:port
	ClientVersion string // what it calls itself, cut to a bound
}
