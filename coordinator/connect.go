package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// connection is one that registered with a term.
type connection struct {
	closed  func()
	waiting int       // relayed requests without an answer
	used    time.Time // when the last relayed request was answered, or the term handed over
}

// Connect answers when coordinator tc serves, or with ErrNotReady: after LoadWait (TC-7), or at once where another process is
// to lead. closed is called, at most once, when the term that answered ends; if it was handed over, when the connection is
// idle. ctx is the connection's.
func (g *Group) Connect(ctx context.Context, tc uint64, closed func(), done func(error)) {
	c, err := g.find(tc)
	if err != nil {
		done(err)
		return
	}
	if c.register(ctx, closed) {
		done(nil)
		return
	}
	if !c.expected() || !c.background(func() { c.awaitTerm(ctx, closed, done) }) {
		done(c.notServing())
	}
}

func (c *Coordinator) notServing() error {
	return fmt.Errorf("%w: coordinator %d does not serve here yet", txn.ErrNotReady, c.tc)
}

// register keeps closed for the end of the term, if one is being served, until ctx is done. ctx stands for the connection: a
// later registration of it replaces the earlier one.
func (c *Coordinator) register(ctx context.Context, closed func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.serving {
		return false
	}
	if _, known := c.registered[ctx]; !known {
		context.AfterFunc(ctx, func() {
			c.mu.Lock()
			delete(c.registered, ctx)
			c.mu.Unlock()
		})
	}
	c.registered[ctx] = &connection{closed: closed, used: c.now()}
	return true
}

func (c *Coordinator) awaitTerm(ctx context.Context, closed func(), done func(error)) {
	limit := time.NewTimer(c.loadWait())
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			done(context.Cause(ctx))
			return
		case <-limit.C:
			done(c.notServing())
			return
		case <-c.stop:
			done(c.notServing())
			return
		case <-c.termBegan():
			if c.register(ctx, closed) {
				done(nil)
				return
			}
		}
	}
}
