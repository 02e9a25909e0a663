package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Connect answers when coordinator tc serves, or with ErrNotReady: after LoadWait (TC-7), or after placeWait where another process is
// to lead, or at once where it was handed over to that one. ended is called when the term that answered ends. If it was handed over, requests of the connection, whose context
// is ctx, go on being answered by the new leader. ended may be called again then, when this process has led again.
func (g *Group) Connect(ctx context.Context, tc uint64, ended func(handedOver bool), done func(error)) {
	c, err := g.find(tc)
	if err != nil {
		done(err)
		return
	}
	if c.register(ctx, ended) {
		done(nil)
		return
	}
	if c.handedOver() || !c.background(func() { c.awaitTerm(ctx, ended, done) }) {
		done(c.notServing())
	}
}

func (c *Coordinator) notServing() error {
	return fmt.Errorf("%w: coordinator %d does not serve here yet", txn.ErrNotReady, c.tc)
}

// register keeps ended for the end of the term, if one is being served, until ctx is done. ctx stands for the connection: a
// later registration of it replaces the earlier one.
func (c *Coordinator) register(ctx context.Context, ended func(bool)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.serving {
		return false
	}
	if _, known := c.registered[ctx]; !known {
		context.AfterFunc(ctx, func() { c.forget(ctx) })
	}
	c.registered[ctx] = ended
	return true
}

// forget takes out a connection that has ended. With the last one requests go nowhere else any more.
func (c *Coordinator) forget(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.registered, ctx)
	if len(c.registered) == 0 {
		c.moved.Store(false)
	}
}

func (c *Coordinator) awaitTerm(ctx context.Context, ended func(bool), done func(error)) {
	limit := time.NewTimer(c.loadWait())
	defer limit.Stop()
	elsewhere := time.NewTimer(placeWait)
	defer elsewhere.Stop()
	for {
		select {
		case <-ctx.Done():
			done(context.Cause(ctx))
			return
		case <-elsewhere.C:
			if !c.expected() {
				done(c.notServing())
				return
			}
		case <-limit.C:
			done(c.notServing())
			return
		case <-c.stop:
			done(c.notServing())
			return
		case <-c.termBegan():
			if c.register(ctx, ended) {
				done(nil)
				return
			}
		}
	}
}
