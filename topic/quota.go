package topic

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// evictTo is the part of its quota, in percent, to which a backlog is cut.
// Source: BacklogQuotaManager.dropBacklogForSizeLimit, reductionFactor.
const evictTo = 90

// checkBacklog does what the policies say if a backlog is too large or too old. Size is known at any time, age is looked up.
func (t *Topic) checkBacklog(now time.Time, policies *Policies) {
	if t.options.BacklogInterval < 0 {
		return
	}
	if policies.BacklogBytes > 0 {
		t.limitBacklog(policies)
	}
	if policies.BacklogAge <= 0 {
		t.tooOld = false
		return
	}
	if t.aging || !t.behind(t.behindLast()) {
		t.tooOld = t.tooOld && t.aging
		return
	}
	t.aging = true
	t.findStored(now.Add(-policies.BacklogAge), func(p ledger.Position, err error) {
		t.aging = false
		if err != nil {
			t.log.Warn().Err(err).Msg("age of the backlog cannot be looked up, tried again later")
			return
		}
		t.tooOld = t.behind(p)
		switch {
		case !t.tooOld:
		case policies.BacklogPolicy == ConsumerBacklogEviction:
			t.tooOld = false
			t.advanceAll(p)
		default:
			t.blockProducers()
		}
	})
}

func (t *Topic) limitBacklog(policies *Policies) {
	most := uint64(policies.BacklogBytes)
	switch {
	case t.backlogSize() <= most:
	case policies.BacklogPolicy == ConsumerBacklogEviction:
		t.advanceAll(t.positionAt(t.sizes.through - part(most, evictTo, 100)).Next()) // the estimate lies within an entry
	default:
		t.blockProducers()
	}
}

// backlogSize is that of the slowest subscription.
func (t *Topic) backlogSize() uint64 {
	var most uint64
	for _, s := range t.subscriptions {
		most = max(most, s.backlogSize())
	}
	return most
}

// blockProducers disconnects the producers. They hear why when they come again.
//
// Source: BacklogQuotaManager.disconnectProducers.
func (t *Topic) blockProducers() {
	for _, p := range t.producers {
		p.detach()
		p.client.Disconnect()
	}
}

// overQuota refuses a producer while the backlog is too large or too old.
//
// Source: ServerCnx.handleProducer, backlogQuotaCheckFuture.
func (t *Topic) overQuota() error {
	policies := t.options.Policies(t.name)
	if policies.BacklogPolicy == ConsumerBacklogEviction || t.options.BacklogInterval < 0 {
		return nil
	}
	bySize := policies.BacklogBytes > 0 && t.backlogSize() > uint64(policies.BacklogBytes)
	if !bySize && !(t.tooOld && policies.BacklogAge > 0) {
		return nil
	}
	if policies.BacklogPolicy == ProducerException {
		return fmt.Errorf("%w: %s", ErrQuotaException, t.fullName)
	}
	return fmt.Errorf("%w: %s", ErrQuotaExceeded, t.fullName)
}
