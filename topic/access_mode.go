package topic

import (
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

const (
	// epochBytes is what the topic epoch takes in a write.
	epochBytes = 9
	// maxEpoch bounds the topic epoch that a producer may ask for, so that there is always room for the next.
	maxEpoch = 1 << 62
)

// admission is the answer to a producer that wants to attach.
type admission struct {
	verdict  verdict
	err      error     // refused
	obstacle *producer // obstructed: admitted if this one is not alive
	epoch    uint64    // admitted in an exclusive mode
	fences   bool      // admitted: all others are closed
}

type verdict uint8

const (
	admitted verdict = iota
	refused
	obstructed
	waits // until nobody is in the way
)

func refuse(err error, format string, args ...any) admission {
	return admission{verdict: refused, err: fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))}
}

func (a *attachProducer) mode() pulsarproto.ProducerAccessMode { return a.cmd.GetProducerAccessMode() }

// exclusive reports whether nobody else may be attached beside the producer.
func (a *attachProducer) exclusive() bool { return a.mode() != pulsarproto.ProducerAccessMode_Shared }

func (a *attachProducer) fencing() bool {
	return a.mode() == pulsarproto.ProducerAccessMode_ExclusiveWithFencing
}

// admit decides about the producer. A producer in its way is asked whether it is alive before it counts, because clients give up
// when they are told that they are fenced.
// Source: AbstractTopic.incrementTopicEpochIfNeeded, internalAddProducer, tryOverwriteOldProducer.
func (a *attachProducer) admit() admission {
	t := a.topic
	if a.cancelled != nil {
		return admission{verdict: refused, err: a.cancelled}
	}
	if t.terminated {
		return admission{verdict: refused, err: ErrTopicTerminated}
	}
	if t.leaving() {
		return admission{verdict: refused, err: errFencedTopic}
	}
	if a.exclusive() && a.cmd.TopicEpoch != nil && t.hasEpoch && a.cmd.GetTopicEpoch() < t.epoch {
		return refuse(ErrProducerFenced, "topic epoch has already moved: current epoch %d, producer epoch %d", t.epoch, a.cmd.GetTopicEpoch())
	}
	if err := t.overQuota(); err != nil {
		return admission{verdict: refused, err: err}
	}
	old := t.producers[a.name]
	if old != nil && !a.replaces(old) && !a.fencing() {
		return a.behind(old, refuse(ErrProducerBusy, "%s", a.name))
	}
	if most := t.options.Policies(t.name).MaxProducers; most > 0 && !a.fencing() && a.others(old)+t.waitingBeside(a) >= most {
		return refuse(ErrProducerBusy, "topic reached max producers limit %d", most)
	}
	switch {
	case !a.exclusive():
		return a.admitShared(old)
	case a.fencing():
		return admission{epoch: a.nextEpoch(), fences: true}
	default:
		return a.admitExclusive(old)
	}
}

func (a *attachProducer) admitShared(old *producer) admission {
	t := a.topic
	switch {
	case t.exclusive != nil && t.exclusive != old:
		return a.behind(t.exclusive, refuse(ErrProducerBusy, "topic has an exclusive producer: %s", t.exclusive.name))
	case len(t.waiting) > 0:
		return refuse(ErrProducerBusy, "a producer waits to be exclusive: %s", t.waiting[0].name)
	}
	return admission{}
}

// admitExclusive decides about Exclusive and WaitForExclusive. Whoever waits first comes first.
func (a *attachProducer) admitExclusive(old *producer) admission {
	t := a.topic
	first := len(t.waiting) == 0 || t.waiting[0] == a || old != nil && old == t.exclusive
	if a.others(old) == 0 && first {
		return admission{epoch: a.nextEpoch()}
	}
	if a.mode() == pulsarproto.ProducerAccessMode_WaitForExclusive {
		return admission{verdict: waits}
	}
	for _, other := range t.producers {
		if other != old && (a.probed == nil || !a.probed.attached) {
			return admission{verdict: obstructed, obstacle: other}
		}
	}
	return refuse(ErrProducerFenced, "topic has %d producers, and %d wait to be exclusive", a.others(old), len(t.waiting))
}

// behind returns otherwise if other is known to be alive.
func (a *attachProducer) behind(other *producer, otherwise admission) admission {
	if a.probed != other {
		return admission{verdict: obstructed, obstacle: other}
	}
	return otherwise
}

// replaces reports whether old is an earlier one of the same producer of the same connection.
func (a *attachProducer) replaces(old *producer) bool {
	return old.client.CnxID() == a.client.CnxID() && old.id == a.cmd.GetProducerId() && a.cmd.GetEpoch() > old.epoch
}

// others is the number of producers beside old, which may be nil.
func (a *attachProducer) others(old *producer) int {
	n := len(a.topic.producers)
	if old != nil {
		n--
	}
	return n
}

// waitingBeside is the number of producers that wait, without a.
func (t *Topic) waitingBeside(a *attachProducer) int {
	n := len(t.waiting)
	if a.queued {
		n--
	}
	return n
}

// nextEpoch is the epoch under which the producer is exclusive: the one that it has, or a new one.
func (a *attachProducer) nextEpoch() uint64 {
	switch {
	case a.cmd.TopicEpoch != nil:
		return a.cmd.GetTopicEpoch()
	case a.topic.hasEpoch:
		return a.topic.epoch + 1
	}
	return 0
}

// writeEpoch makes the epoch durable before it is answered: whoever has an older one stays fenced from then on.
func (a *attachProducer) writeEpoch(g *group) {
	g.write(clientv3.OpPut(a.topic.keys.Epoch(), string(encodeNumber(a.admission.epoch))))
	g.count(1, epochBytes)
}

// wait lets the producer wait until nobody is in its way.
func (a *attachProducer) wait() {
	t := a.topic
	a.promoting = false
	if a.cancelled != nil {
		a.leaveQueue()
		a.fail(a.cancelled)
		return
	}
	if !a.queued {
		a.queued = true
		t.waiting = append(t.waiting, a)
		a.client.Queued(a.info(false))
	}
	t.promote()
}

// leaveQueue takes the producer out of those that wait.
func (a *attachProducer) leaveQueue() {
	if !a.queued {
		return
	}
	t := a.topic
	a.queued, a.promoting = false, false
	t.waiting = slices.DeleteFunc(t.waiting, func(other *attachProducer) bool { return other == a })
	t.promote()
}

// promote lets the first of the producers that wait try again if nobody is in its way.
func (t *Topic) promote() {
	if len(t.producers) > 0 || len(t.waiting) == 0 || t.waiting[0].promoting {
		return
	}
	t.waiting[0].promoting = true
	t.queue.push(t.waiting[0])
}

// cancel ends the wait of a producer whose client went away.
func (a *attachProducer) cancel(cause error) {
	t := a.topic
	t.post(func(alive bool) {
		if !alive {
			return
		}
		a.cancelled = cause
		if a.queued && !a.promoting {
			a.leaveQueue()
			a.fail(cause)
		}
	})
}

// failWaiting refuses the producers that wait. One that is in the queue or in a group is answered there.
func (t *Topic) failWaiting(err error) {
	waiting := t.waiting
	t.waiting = nil
	for _, a := range waiting {
		a.queued = false
		if a.promoting {
			a.cancelled = err
		} else {
			a.fail(err)
		}
	}
}

// fenceProducers closes all producers, and those that wait. What they have sent and is not written yet never is.
func (t *Topic) fenceProducers() {
	t.failWaiting(fmt.Errorf("%w: fenced out", ErrProducerFenced))
	for _, p := range t.producers {
		p.broken = true
		p.detach()
		p.client.Disconnect()
	}
}
