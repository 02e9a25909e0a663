package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errMoved answers requests when another process is to lead. They were not performed, or are ENDs, so they may be asked again.
var errMoved = fmt.Errorf("%w: another process is to lead it", txn.ErrCoordinatorNotFound)

// move makes requests of registered connections go to the process that is to lead.
func (c *Coordinator) move() {
	c.leads.Store(false)
	if c.opts.Relay == nil {
		return
	}
	c.moved.Store(true)
}

// handedOver reports whether requests go elsewhere: until this process is to lead again, or the last connection that had
// registered has ended. From then on a request may come from the process that is handing the coordinator back.
func (c *Coordinator) handedOver() bool { return c.moved.Load() && !c.expected() }

// relay sends cmd on if the coordinator was handed over and the connection had registered.
func (c *Coordinator) relay(ctx context.Context, cmd fsm.Command, answer answerFunc) bool {
	if !c.relays(ctx) {
		return false
	}
	ended := func(err error) { answer(&fsm.Effect{}, err) }
	switch cmd := cmd.(type) {
	case *fsm.NewTxn:
		c.opts.Relay.NewTxn(ctx, c.tc, cmd, func(id txn.ID, err error) { answer(&fsm.Effect{ID: id}, err) })
	case *fsm.AddParticipants:
		c.opts.Relay.AddParticipants(ctx, c.tc, cmd, ended)
	case *fsm.EndTxn:
		c.opts.Relay.EndTxn(ctx, c.tc, cmd, ended)
	default:
		return false
	}
	return true
}

func (c *Coordinator) relays(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handedOver() && c.registered[ctx] != nil
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

// askedAgain takes what is not found for unknown: an END that is relayed may have been performed here, and the new leader may have
// forgotten that since, or never have kept it.
func (c *Coordinator) askedAgain(cmd fsm.Command, answer answerFunc) answerFunc {
	if _, end := cmd.(*fsm.EndTxn); !end {
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
