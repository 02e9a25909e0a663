package wireclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// NewTxn builds NEW_TXN. ttl is in milliseconds; an empty clientName is left out.
func NewTxn(tc, ttlMillis uint64, clientName string) *pulsarproto.BaseCommand {
	cmd := &pulsarproto.CommandNewTxn{TcId: &tc, TxnTtlSeconds: &ttlMillis}
	if clientName != "" {
		cmd.ClientName = &clientName
	}
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: cmd}
}

// AddPartitions builds ADD_PARTITION_TO_TXN.
func AddPartitions(id txn.ID, topics ...string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN.Enum(),
		AddPartitionToTxn: &pulsarproto.CommandAddPartitionToTxn{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Partitions: topics,
		},
	}
}

// AddSubscription builds ADD_SUBSCRIPTION_TO_TXN.
func AddSubscription(id txn.ID, topic, subscription string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN.Enum(),
		AddSubscriptionToTxn: &pulsarproto.CommandAddSubscriptionToTxn{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least,
			Subscription: []*pulsarproto.Subscription{{Topic: &topic, Subscription: &subscription}},
		},
	}
}

// EndTxn builds END_TXN. An empty clientName is left out.
func EndTxn(id txn.ID, action txn.Action, clientName string) *pulsarproto.BaseCommand {
	wire := pulsarproto.TxnAction(action)
	cmd := &pulsarproto.CommandEndTxn{TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: &wire}
	if clientName != "" {
		cmd.ClientName = &clientName
	}
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN.Enum(), EndTxn: cmd}
}

// StartNewTxn is Start for NewTxn, without building it.
func (c *Conn) StartNewTxn(tc, ttlMillis uint64, clientName string, handler Handler) {
	if requestID, ok := c.expect(handler); ok {
		c.encode(func(dst []byte) []byte { return pulsarproto.AppendNewTxn(dst, requestID, tc, ttlMillis, clientName) })
	}
}

// StartEndTxn is Start for EndTxn, without building it.
func (c *Conn) StartEndTxn(id txn.ID, action txn.Action, clientName string, handler Handler) {
	if requestID, ok := c.expect(handler); ok {
		c.encode(func(dst []byte) []byte {
			return pulsarproto.AppendEndTxn(dst, requestID, id.Most, id.Least, pulsarproto.TxnAction(action), clientName)
		})
	}
}

// Begin opens a transaction and waits for its id.
func (c *Conn) Begin(ctx context.Context, tc, ttlMillis uint64, clientName string) (txn.ID, error) {
	answer, err := c.Call(ctx, NewTxn(tc, ttlMillis, clientName))
	if err != nil {
		return txn.ID{}, err
	}
	r := answer.GetNewTxnResponse()
	return txn.ID{Most: r.GetTxnidMostBits(), Least: r.GetTxnidLeastBits()}, nil
}

// End commits or aborts a transaction and waits for the answer.
func (c *Conn) End(ctx context.Context, id txn.ID, action txn.Action, clientName string) error {
	_, err := c.Call(ctx, EndTxn(id, action, clientName))
	return err
}

// ConnectTC does what every client does first: TC_CLIENT_CONNECT_REQUEST.
func (c *Conn) ConnectTC(ctx context.Context, tc uint64) error {
	_, err := c.Call(ctx, &pulsarproto.BaseCommand{
		Type:                   pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST.Enum(),
		TcClientConnectRequest: &pulsarproto.CommandTcClientConnectRequest{TcId: &tc},
	})
	return err
}

// maxRedirects is how many lookup redirects are followed. Source: pulsar-client-go lookup_service.go, lookupResultMaxRedirect.
const maxRedirects = 20

// DialTC is Dialer.DialTC in the clear and without credentials.
func DialTC(ctx context.Context, serviceURL string, tc uint64) (*Conn, error) {
	return Dialer{}.DialTC(ctx, serviceURL, tc)
}

// ErrUnreachable says that the server a lookup has named could not be connected to: it may have died a moment ago.
var ErrUnreachable = errors.New("the leader cannot be reached")

// DialTC finds the server that leads coordinator tc, as clients do, and connects to it. Errors: ErrUnreachable.
func (d Dialer) DialTC(ctx context.Context, serviceURL string, tc uint64) (*Conn, error) {
	addr, err := d.address(serviceURL)
	if err != nil {
		return nil, err
	}
	topic := topicname.AssignTopic.WithPartition(int(tc)).String()
	authoritative := false
	for redirects := range maxRedirects {
		c, err := d.Dial(ctx, addr)
		if err != nil && redirects > 0 {
			return nil, fmt.Errorf("coordinator %d at %s: %w: %w", tc, addr, ErrUnreachable, err)
		}
		if err != nil {
			return nil, err
		}
		next, done, err := d.follow(ctx, c, topic, &authoritative, addr)
		if err == nil && done {
			err = c.ConnectTC(ctx, tc)
			if err == nil {
				return c, nil
			}
		}
		err = errors.Join(err, c.Close())
		if err != nil {
			return nil, fmt.Errorf("coordinator %d at %s: %w", tc, addr, err)
		}
		addr = next
	}
	return nil, fmt.Errorf("coordinator %d: more than %d redirects", tc, maxRedirects)
}

// follow looks topic up on c. done means that c itself serves it; else next is where to go on.
func (d Dialer) follow(ctx context.Context, c *Conn, topic string, authoritative *bool, addr string) (next string, done bool, err error) {
	r, err := c.Lookup(ctx, topic, *authoritative)
	if err != nil {
		return "", false, err
	}
	owner := r.GetBrokerServiceUrl()
	if d.TLS != nil {
		owner = r.GetBrokerServiceUrlTls()
	}
	next, err = d.address(owner)
	if err != nil {
		return "", false, err
	}
	*authoritative = r.GetAuthoritative()
	connect := r.GetResponse() == pulsarproto.CommandLookupTopicResponse_Connect
	if connect && (r.GetProxyThroughServiceUrl() || sameAddress(next, addr)) {
		return "", true, nil
	}
	return next, false, nil
}

// Lookup asks who serves a topic.
func (c *Conn) Lookup(ctx context.Context, topic string, authoritative bool) (*pulsarproto.CommandLookupTopicResponse, error) {
	answer, err := c.Call(ctx, &pulsarproto.BaseCommand{
		Type:        pulsarproto.BaseCommand_LOOKUP.Enum(),
		LookupTopic: &pulsarproto.CommandLookupTopic{Topic: &topic, Authoritative: &authoritative},
	})
	return answer.GetLookupTopicResponse(), err
}

func sameAddress(a, b string) bool { return strings.EqualFold(a, b) }
