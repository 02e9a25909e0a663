package etcdstore

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// connections are those of a client to members. What was asked on one is waited for as long as it stands, also when its member is
// given nothing more: a member that hangs would hold it until the caller's patience is over, and leases with it.
type connections struct {
	dialer net.Dialer

	mu   sync.Mutex
	open map[*connection]struct{} // guarded by mu
}

// connection forgets itself when it is closed.
type connection struct {
	net.Conn
	address string
	of      *connections
	heard   atomic.Bool // something was read since the last cut
}

func newConnections() *connections {
	return &connections{dialer: net.Dialer{Control: limitSilence}, open: make(map[*connection]struct{})}
}

// dial is for grpc.WithContextDialer. address is the host and port of an endpoint.
func (c *connections) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	kept := &connection{Conn: conn, address: address, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[kept] = struct{}{}
	return kept, nil
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connections to lost endpoints, and those to silent ones on which nothing has come since the last cut. Whoever waits for
// an answer learns at once that it does not come; whether the request was applied is as unknown as before.
func (c *connections) cut(lost, silent []string) {
	isLost, isSilent := addresses(lost), addresses(silent)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		heard := conn.heard.Swap(false)
		if isLost[conn.address] || isSilent[conn.address] && !heard {
			conn.Conn.Close() // an error says that it was closed
		}
	}
}

// addresses are the hosts and ports of endpoints.
func addresses(endpoints []string) map[string]bool {
	all := make(map[string]bool)
	for _, endpoint := range endpoints {
		if parsed, err := url.Parse(endpoint); err == nil { // else nobody could have dialled it
			all[parsed.Host] = true
		}
	}
	return all
}
