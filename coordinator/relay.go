package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// idleInterval is how often it is looked which connections of a coordinator that was handed over are idle.
	idleInterval = 200 * time.Millisecond
	// idleAfter is how long a connection has had no request when it is idle.
	idleAfter = time.Second
	// busyLimit is how long connections that are never idle are waited for. Then one without a waiting request is enough.
	busyLimit = 20 * time.Second
	// relayLimit is how long requests are relayed at most.
	relayLimit = 30 * time.Second
)

// errMoved answers requests when another process is to lead. They were not performed, or are ENDs, so they may be asked again.
var errMoved = fmt.Errorf("%w: another process is to lead it", txn.ErrCoordinatorNotFound)

// move makes requests of registered connections go to the process that is to lead.
func (c *Coordinator) move() {
	c.leads.Store(false)
	if c.opts.Relay == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved.Store(true)
	for _, registered := range c.registered {
		registered.used = c.now()
	}
}

// handedOver reports whether requests go elsewhere: until this process is to lead again, or the last connection that had
// registered is closed. From then on a request may come from the process that is handing the coordinator back.
func (c *Coordinator) handedOver() bool { return c.moved.Load() && !c.expected() }

// relay sends cmd on if the coordinator was handed over and the connection had registered.
func (c *Coordinator) relay(ctx context.Context, cmd fsm.Command, answer answerFunc) bool {
	from := c.relayed(ctx)
	if from == nil {
		return false
	}
	done := func(e *fsm.Effect, err error) {
		c.mu.Lock()
		from.waiting--
		from.used = c.now()
		c.mu.Unlock()
		answer(e, err)
	}
	ended := func(err error) { done(&fsm.Effect{}, err) }
	switch cmd := cmd.(type) {
	case *fsm.NewTxn:
		c.opts.Relay.NewTxn(ctx, c.tc, cmd, func(id txn.ID, err error) { done(&fsm.Effect{ID: id}, err) })
	case *fsm.AddParticipants:
		c.opts.Relay.AddParticipants(ctx, c.tc, cmd, ended)
	case *fsm.EndTxn:
		c.opts.Relay.EndTxn(ctx, c.tc, cmd, ended)
	default:
		ended(txn.ErrCoordinatorNotFound)
	}
	return true
}

// relayed returns the connection of a request that is to be relayed, with the request counted; nil if it is not.
func (c *Coordinator) relayed(ctx context.Context) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.registered[ctx]
	if !c.handedOver() || from == nil {
		return nil
	}
	from.waiting++
	return from
}

// orRelay returns an answer that sends cmd on if the coordinator is handed over before there is one.
func (c *Coordinator) orRelay(ctx context.Context, cmd fsm.Command, answer answerFunc) answerFunc {
	return func(e *fsm.Effect, err error) {
		if errors.Is(err, errMoved) && c.relay(ctx, cmd, c.askedAgain(cmd, answer)) {
			return
		}
		answer(e, err)
	}
}

// askedAgain takes what is not found for unknown where outcomes are not kept: an END that is relayed may have been performed here,
// and the new leader may have forgotten that since.
func (c *Coordinator) askedAgain(cmd fsm.Command, answer answerFunc) answerFunc {
	if _, end := cmd.(*fsm.EndTxn); !end || c.opts.Machine.Preserver.Enabled() {
		return answer
	}
	return func(e *fsm.Effect, err error) {
		var notFound *txn.NotFoundError
		if errors.As(err, &notFound) {
			err = fmt.Errorf("%w: it was handed over while the transaction ended, and its outcome is not kept", txn.ErrCoordinatorNotFound)
		}
		answer(e, err)
	}
}

// closeIdle closes the connections that registered with the term that was handed over, each when it is idle, so that its
// client finds the new leader. It ends when none is left, or when this process leads again.
func (c *Coordinator) closeIdle() {
	began := c.now()
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			c.closeRegistered(func(*connection) bool { return true })
			return
		case <-ticker.C:
		}
		now := c.now()
		left := c.closeRegistered(func(r *connection) bool {
			switch took := now.Sub(began); {
			case took >= relayLimit:
				return true
			case took >= busyLimit:
				return r.waiting == 0
			}
			return r.waiting == 0 && now.Sub(r.used) >= idleAfter
		})
		if !left {
			c.moved.Store(false)
			return
		}
	}
}

// closeRegistered closes the connections that are over, unless a term is served. left reports whether some may follow.
func (c *Coordinator) closeRegistered(over func(*connection) bool) (left bool) {
	c.mu.Lock()
	var closing []func()
	for ctx, registered := range c.registered {
		if !c.serving && over(registered) {
			closing = append(closing, registered.closed)
			delete(c.registered, ctx)
		}
	}
	left = !c.serving && len(c.registered) > 0
	c.mu.Unlock()
	for _, closed := range closing {
		closed()
	}
	return left
}
