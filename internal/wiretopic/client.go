package wiretopic

import (
	"context"
	"errors"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// ErrClosedByServer is what a producer's sends and a consumer's receives get when the server closed it.
var ErrClosedByServer = errors.New("closed by the server")

// Client is a connection with producers and consumers on it.
type Client struct {
	*wireclient.Conn

	// other hears the commands that are not about a producer or a consumer's messages; nil: nobody does.
	other func(*pulsarproto.BaseCommand)

	mu        sync.Mutex // guards the following
	next      uint64
	producers map[uint64]*Producer
	consumers map[uint64]*Consumer
}

// Dial connects to addr, host:port.
func Dial(ctx context.Context, addr string) (*Client, error) {
	conn, err := wireclient.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return newClient(conn, nil), nil
}

// DialAs connects to addr with a handshake of the caller's. other, if not nil, hears from the reader what the server sends unasked
// and the client has no use for.
func DialAs(ctx context.Context, addr string, connect *pulsarproto.CommandConnect, other func(*pulsarproto.BaseCommand)) (*Client, error) {
	conn, err := wireclient.DialAs(ctx, addr, connect)
	if err != nil {
		return nil, err
	}
	return newClient(conn, other), nil
}

func newClient(conn *wireclient.Conn, other func(*pulsarproto.BaseCommand)) *Client {
	c := &Client{Conn: conn, other: other, producers: map[uint64]*Producer{}, consumers: map[uint64]*Consumer{}}
	conn.OnPush = c.push
	go c.awaitEnd()
	return c
}

// DialTC connects to addr and registers with coordinator 0 there.
func DialTC(ctx context.Context, addr string) (*Client, error) {
	c, err := Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if err := c.ConnectTC(ctx, 0); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// awaitEnd ends everything on the connection with it.
func (c *Client) awaitEnd() {
	<-c.Done()
	c.mu.Lock()
	producers, consumers := c.producers, c.consumers
	c.producers, c.consumers = map[uint64]*Producer{}, map[uint64]*Consumer{}
	c.mu.Unlock()
	for _, p := range producers {
		p.end(wireclient.ErrClosed)
	}
	for _, consumer := range consumers {
		consumer.end(wireclient.ErrClosed)
	}
}

func (c *Client) producer(id uint64) *Producer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.producers[id]
}

func (c *Client) consumer(id uint64) *Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumers[id]
}

// push takes what the server sends unasked.
func (c *Client) push(command *pulsarproto.BaseCommand, payload []byte) {
	switch command.GetType() {
	case pulsarproto.BaseCommand_SEND_RECEIPT:
		r := command.GetSendReceipt()
		if p := c.producer(r.GetProducerId()); p != nil {
			p.answer(r.GetSequenceId(), r.GetMessageId(), nil)
		}
	case pulsarproto.BaseCommand_SEND_ERROR:
		e := command.GetSendError()
		if p := c.producer(e.GetProducerId()); p != nil {
			p.answer(e.GetSequenceId(), nil, &wireclient.ServerError{Code: e.GetError(), Text: e.GetMessage()})
		}
	case pulsarproto.BaseCommand_CLOSE_PRODUCER:
		if p := c.producer(command.GetCloseProducer().GetProducerId()); p != nil {
			p.end(ErrClosedByServer)
		}
	case pulsarproto.BaseCommand_MESSAGE:
		m := command.GetMessage()
		if consumer := c.consumer(m.GetConsumerId()); consumer != nil {
			consumer.take(m, payload)
		}
	case pulsarproto.BaseCommand_CLOSE_CONSUMER:
		if consumer := c.consumer(command.GetCloseConsumer().GetConsumerId()); consumer != nil {
			consumer.end(ErrClosedByServer)
		}
	default:
		if c.other != nil {
			c.other(command)
		}
	}
}
