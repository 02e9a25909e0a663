package topic

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errSessionLost: the owner key hung on a lease that is gone, and another instance may have the topic by now.
var errSessionLost = fmt.Errorf("%w: the lease of this instance is gone", ErrPersistence)

// errLeaving: the topics of this instance go to others.
var errLeaving = fmt.Errorf("%w: this instance is stopping, look the topic up again", txn.ErrNotReady)

// sessionPause is the time between two looks whether a session has begun behind one that was lost.
const sessionPause = 100 * time.Millisecond

// sessionOver reports whether the lease of the topic's owner key is known to be gone.
func (t *Topic) sessionOver() bool {
	select {
	case <-t.lost: // nil where there is none: never
		return true
	default:
		return false
	}
}

// followSessions closes the topics of each session that is lost. Etcd refuses what they write anyway; their clients learn of it at
// once, and of messages that they would not be given any more.
func (ts *Topics) followSessions() {
	var ended clientv3.LeaseID
	for {
		lease, lost := ts.options.Instance.Session()
		if lease == ended { // a new one has not begun
			if !ts.pause(sessionPause) {
				return
			}
			continue
		}
		ts.closeOver() // of sessions that began and ended between two looks
		select {
		case <-lost:
		case <-ts.ctx.Done():
			return
		}
		ended = lease
		ts.closeOver()
	}
}

// closeOver closes the topics whose session is lost.
func (ts *Topics) closeOver() {
	for _, t := range ts.all() {
		if t.sessionOver() {
			t.abandon(errSessionLost)
		}
	}
}

// HandOver gives every topic up, so that other instances load them, and loads none any more: those that are asked for are refused
// with txn.ErrNotReady. It answers what waits, as long as ctx allows, and returns when all
// topics are given up, but those that are just being loaded if that takes longer. Close is still needed.
func (ts *Topics) HandOver(ctx context.Context) {
	ts.mu.Lock()
	ts.leaving = true
	ts.mu.Unlock()
	ts.awaitLoads(ctx)
	ts.closeAll(ctx, func(t *Topic) { t.unload() })
}

// awaitLoads returns when no load is under way any more, or ctx is done. No load may begin meanwhile.
func (ts *Topics) awaitLoads(ctx context.Context) {
	loaded := make(chan struct{})
	ts.tasks.Go(func() {
		ts.loads.Wait()
		close(loaded)
	})
	select {
	case <-loaded:
	case <-ctx.Done():
	}
}
