package etcdstore

import (
	"context"
	"net"
	"net/url"
	"sync"
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
	kept := &connection{conn, address, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[kept] = struct{}{}
	return kept, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connections to endpoints. Whoever waits for an answer learns at once that it does not come; whether the request was
// applied is as unknown as before.
func (c *connections) cut(endpoints ...string) {
	addresses := make(map[string]bool)
	for _, endpoint := range endpoints {
		if parsed, err := url.Parse(endpoint); err == nil { // else nobody could have dialled it
			addresses[parsed.Host] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if addresses[conn.address] {
			conn.Conn.Close() // an error says that it was closed
		}
	}
}
