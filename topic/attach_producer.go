package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// attachProducer is an item so that everything an earlier producer of the name sent is decided before.
type attachProducer struct {
	topic  *Topic
	caller cnx.Caller
	cmd    *pulsarproto.CommandProducer
	client cnx.ProducerClient
	answer func(*producer, cnx.ProducerInfo, error)

	name      string
	probed    *producer // was found alive
	queued    bool      // waits to become exclusive, and its client knows
	promoting bool      // waits, and is in the queue because nobody is in its way any more
	cancelled error     // why it is refused: its client went away, or it was fenced
	admission admission // of an exclusive mode, decided as its group was prepared
}

// prepare decides about the exclusive modes, when all attachments before them are done. Shared is decided when it is done.
func (a *attachProducer) prepare(g *group) bool {
	if a.exclusive() && (g.attaches || !g.fits(1, epochBytes)) {
		return false
	}
	g.attaches = true
	if !a.exclusive() {
		return true
	}
	a.admission = a.admit()
	if a.admission.verdict == admitted {
		a.writeEpoch(g)
	}
	return true
}

func (a *attachProducer) undo() {}

func (a *attachProducer) fail(err error) { a.answer(nil, cnx.ProducerInfo{}, err) }

func (a *attachProducer) done(*group) {
	admission := a.admission
	if !a.exclusive() {
		admission = a.admit()
	}
	switch admission.verdict {
	case refused:
		a.leaveQueue()
		a.fail(admission.err)
	case obstructed:
		a.probe(admission.obstacle)
	case waits:
		a.wait()
	default:
		a.attach(admission)
	}
}

// attach makes the producer one of the topic.
func (a *attachProducer) attach(admission admission) {
	t := a.topic
	if admission.fences {
		t.fenceProducers()
	} else if old := t.producers[a.name]; old != nil {
		old.detach()
	}
	t.dropSends(a.name)
	p := &producer{
		topic: t, id: a.cmd.GetProducerId(), name: a.name, epoch: a.cmd.GetEpoch(), caller: a.caller, client: a.client,
		mode: a.mode(), attached: true, since: t.options.Now().UnixMilli(), stored: t.dedup.Open(a.name),
		metadata: keptMetadata(a.cmd.GetMetadata()),
	}
	t.producers[a.name] = p
	if a.exclusive() {
		t.exclusive, t.epoch, t.hasEpoch = p, admission.epoch, true
	}
	a.leaveQueue()
	a.answer(p, a.info(true), nil)
}

// dropSends forgets what earlier producers of the name sent behind the attachment of the next one: it may come late from a
// connection that is closed, and nobody got a receipt. Written afterwards it would not be in the last sequence id that the new
// producer is told.
func (t *Topic) dropSends(name string) {
	t.queue.take(func(it item) bool { s, is := it.(*sendItem); return is && s.producer.name == name })
}

// info is what the client is told.
func (a *attachProducer) info(ready bool) cnx.ProducerInfo {
	t := a.topic
	info := cnx.ProducerInfo{Name: a.name, LastSequenceID: -1, TopicEpoch: t.epoch, HasTopicEpoch: t.hasEpoch, Ready: ready}
	if last, found := t.dedup.Last(a.name); found {
		info.LastSequenceID = int64(last)
	}
	return info
}

// nameProducer returns the name of a producer, a new one if its client gives none.
func (t *Topic) nameProducer(cmd *pulsarproto.CommandProducer) string {
	if name := cmd.GetProducerName(); name != "" {
		return name
	}
	t.counts.names++
	return fmt.Sprintf("pulsar-tc-%d-%d", t.fence, t.counts.names)
}

// probe asks whether the producer in the way is alive, and tries again.
func (a *attachProducer) probe(old *producer) {
	t := a.topic
	t.async(func() {
		alive := old.client.Alive(t.ctx)
		t.ask(func(open bool) {
			if !open {
				a.fail(ErrPersistence)
				return
			}
			a.probed = old
			if !alive {
				old.detach()
			}
			t.queue.push(a)
		})
	})
}

// Produce implements conn.Topics.
func (ts *Topics) Produce(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	if err := checkProducer(cmd); err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	version, err := ts.producerSchema(ctx, name, caller, cmd.GetSchema())
	if err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	var info cnx.ProducerInfo
	p, err := attach(ctx, ts, name, true, func(t *Topic, answer func(*producer, error)) {
		a := &attachProducer{topic: t, name: t.nameProducer(cmd), caller: caller, cmd: cmd, client: client}
		stop := context.AfterFunc(ctx, func() { a.cancel(context.Cause(ctx)) })
		a.answer = func(p *producer, i cnx.ProducerInfo, err error) {
			stop()
			info = i
			answer(p, err)
		}
		if err := t.pushInitialSubscription(cmd.GetInitialSubscriptionName()); err != nil {
			a.fail(err)
			return
		}
		t.queue.push(a)
	})
	if err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	info.SchemaVersion = version
	return p, info, nil
}

// checkProducer refuses what no topic can accept.
func checkProducer(cmd *pulsarproto.CommandProducer) error {
	initial := cmd.GetInitialSubscriptionName()
	if err := errors.Join(checkLength("producer_name", cmd.GetProducerName()), checkLength("initial_subscription_name", initial)); err != nil {
		return err
	}
	if initial == reservedSubscription {
		return ErrSubscriptionName
	}
	if mode := cmd.GetProducerAccessMode(); pulsarproto.ProducerAccessMode_name[int32(mode)] == "" {
		return fmt.Errorf("%w: producer_access_mode %d is unknown", txn.ErrNotAllowed, mode)
	}
	if epoch := cmd.GetTopicEpoch(); epoch > maxEpoch {
		return fmt.Errorf("%w: topic_epoch %d, at most %d", txn.ErrNotAllowed, epoch, uint64(maxEpoch))
	}
	return nil
}

// pushInitialSubscription creates the subscription, at the earliest message, that a producer names, if it is missing.
// Source: ServerCnx.handleProducer, initialSubscriptionName.
func (t *Topic) pushInitialSubscription(name string) error {
	if name == "" || t.subscriptions[name] != nil {
		return nil
	}
	if !t.options.AutoCreation(t.name).Subscriptions {
		return fmt.Errorf("%w: Could not create the initial subscription %s: automatic subscription creation is not allowed", txn.ErrNotAllowed, name)
	}
	t.queue.push(&subscribeItem{topic: t, name: name, durable: true, earliest: true})
	return nil
}
