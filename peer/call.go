package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// ErrUnanswered: the request was sent and the connection ended, or the time was over, before the answer came. It is unknown
// whether it did anything. It is joined with what the request's caller is to be told.
var ErrUnanswered = errors.New("another instance has not answered")

// call is one request until done was called.
type call struct {
	// encode appends the frame.
	encode func(dst []byte, requestID uint64) ([]byte, error)
	// unanswered is what the caller is told where the result is unknown.
	unanswered error
	once       sync.Once
	stop       func() bool // of what waits for the context
	done       func(answer *pulsarproto.BaseCommand, err error)
	topic      string // that is to answer, and is counted; empty: none

	ended atomic.Bool
	id    uint64               // of the request
	link  atomic.Pointer[link] // set behind id; nil: it was not queued
}

// newCall returns a call that ends with ctx if nothing else comes first.
func newCall(ctx context.Context, unanswered error, encode func([]byte, uint64) ([]byte, error), done func(*pulsarproto.BaseCommand, error)) *call {
	c := &call{encode: encode, unanswered: unanswered, done: done}
	started := make(chan struct{})
	defer close(started)
	c.stop = context.AfterFunc(ctx, func() {
		<-started // stop is set
		c.ended.Store(true)
		if l := c.link.Load(); l != nil {
			l.drop(c)
		}
		c.lost(context.Cause(ctx))
	})
	return c
}

// finish ends the call with its answer, or with an error of a request that was not sent.
func (c *call) finish(answer *pulsarproto.BaseCommand, err error) {
	c.once.Do(func() {
		c.stop()
		c.done(answer, err)
	})
}

// lost ends the call without knowing what became of the request.
func (c *call) lost(cause error) {
	c.finish(nil, fmt.Errorf("%w: %w: %w", c.unanswered, ErrUnanswered, cause))
}
