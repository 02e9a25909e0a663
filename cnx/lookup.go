package cnx

// LookupAnswer is the body of a LOOKUP_RESPONSE that found a broker.
type LookupAnswer struct {
	ServiceURL             string // pulsar://host:port; empty: none
	ServiceURLTLS          string // pulsar+ssl://host:port; empty: none
	Redirect               bool   // ask there, instead of connecting there
	Authoritative          bool
	ProxyThroughServiceURL bool
}
