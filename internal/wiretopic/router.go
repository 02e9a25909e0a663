package wiretopic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// maxHops is how many servers a lookup goes through.
const maxHops = 20

// Router connects to whoever serves a topic or leads a coordinator, found out as clients do: by asking any server. It keeps one
// connection to each address, and is used by one goroutine.
type Router struct {
	entry        string
	clients      map[string]*Client // by host:port
	coordinators map[uint64]*Client // on which the client is registered
}

// NewRouter returns a router that begins its lookups at entry, host:port.
func NewRouter(entry string) *Router {
	return &Router{entry: entry, clients: map[string]*Client{}, coordinators: map[uint64]*Client{}}
}

// Close closes all connections.
func (r *Router) Close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Coordinator returns a connection that is registered with coordinator tc.
func (r *Router) Coordinator(ctx context.Context, tc uint64) (*Client, error) {
	if c := r.coordinators[tc]; c != nil {
		return c, nil
	}
	c, err := r.Topic(ctx, topicname.AssignTopic.WithPartition(int(tc)).String())
	if err == nil {
		err = c.ConnectTC(ctx, tc)
	}
	if err != nil {
		return nil, fmt.Errorf("coordinator %d: %w", tc, err)
	}
	r.coordinators[tc] = c
	return c, nil
}

// Topic returns a connection to the server of a topic.
func (r *Router) Topic(ctx context.Context, topic string) (*Client, error) {
	addr, authoritative := r.entry, false
	for range maxHops {
		c, err := r.at(ctx, addr)
		if err != nil {
			return nil, err
		}
		owner, err := c.Lookup(ctx, topic, authoritative)
		if err != nil {
			return nil, fmt.Errorf("look up %s at %s: %w", topic, addr, err)
		}
		connect := owner.GetResponse() == pulsarproto.CommandLookupTopicResponse_Connect
		if connect && owner.GetProxyThroughServiceUrl() {
			return c, nil
		}
		if addr, err = wireclient.Address(owner.GetBrokerServiceUrl()); err != nil {
			return nil, fmt.Errorf("look up %s: %w", topic, err)
		}
		if connect {
			return r.at(ctx, addr)
		}
		authoritative = owner.GetAuthoritative()
	}
	return nil, fmt.Errorf("look up %s: more than %d redirects", topic, maxHops)
}

func (r *Router) at(ctx context.Context, addr string) (*Client, error) {
	if c := r.clients[addr]; c != nil {
		return c, nil
	}
	c, err := Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	r.clients[addr] = c
	return c, nil
}

// Produce is Client.Produce at the server of the topic.
func (r *Router) Produce(ctx context.Context, topic string) (*Producer, error) {
	c, err := r.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	return c.Produce(ctx, topic)
}

// ProduceAs is Client.ProduceAs at the server of the topic.
func (r *Router) ProduceAs(ctx context.Context, command *pulsarproto.CommandProducer) (*Producer, error) {
	c, err := r.Topic(ctx, command.GetTopic())
	if err != nil {
		return nil, err
	}
	return c.ProduceAs(ctx, command)
}

// Subscribe is Client.Subscribe at the server of the topic.
func (r *Router) Subscribe(ctx context.Context, topic, subscription string) (*Consumer, error) {
	c, err := r.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	return c.Subscribe(ctx, topic, subscription)
}
