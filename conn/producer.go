package conn

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// producer is the connection's end of a producer.
type producer struct {
	attachment
	request request // of the attaching, and its id
	asked   uint64

	// Guarded by session.mu.
	topic Producer // nil unless the attaching succeeded
	info  ProducerInfo
	// queued tells that the request has had its first answer: the producer waits to become exclusive.
	queued bool

	// Guarded by outbox.mu.
	unanswered sizes // of the frames of sends
	detached   bool
}

// produce attaches a producer. A repeat for one that is attached gets the same answer again, when the topic expects repeats of its sends.
// Errors: InvalidTopicName, AuthorizationError, ServiceNotReady while one of the same id is coming or going, TooManyRequests, and
// those of Topics.Produce.
//
// Source: PulsarApi.proto CommandProducer; ServerCnx.handleProducer.
func (r request) produce(cmd *pulsarproto.CommandProducer) {
	requestID := cmd.GetRequestId()
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		r.fail(pulsarproto.BaseCommand_PRODUCER, requestID, err)
		return
	}
	p, again := r.addProducer(cmd, r.producerRight(name, cmd.GetInitialSubscriptionName()))
	if again != nil {
		r.attachAgain(again, requestID)
	}
	if p == nil {
		return
	}
	r.requests.Go(func() { r.attachProducer(p, name, cmd) })
}

// addProducer returns a new producer, or again, the attached one that has the id already. It answers the request if there is neither.
func (r request) addProducer(cmd *pulsarproto.CommandProducer, right right) (p, again *producer) {
	id, requestID, cost := cmd.GetProducerId(), cmd.GetRequestId(), attachmentCost+proto.Size(cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.producers[id]; p != nil {
		if p.state == attached {
			return nil, p
		}
		r.fail(pulsarproto.BaseCommand_PRODUCER, requestID, notReady("Producer", p.state))
		return nil, nil
	}
	a, err := r.attach(id, right, cost, func() { delete(r.producers, id) })
	if err != nil {
		r.fail(pulsarproto.BaseCommand_PRODUCER, requestID, err)
		return nil, nil
	}
	p = &producer{attachment: a, request: r, asked: requestID}
	if r.producers == nil {
		r.producers = make(map[uint64]*producer)
	}
	r.producers[id] = p
	delete(r.droppedProducers, id)
	return p, nil
}

// attachAgain answers the request by a producer that was attached before.
func (r request) attachAgain(p *producer, requestID uint64) {
	r.mu.Lock()
	topic := p.topic
	r.mu.Unlock()
	topic.Again(func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case err != nil:
			r.fail(pulsarproto.BaseCommand_PRODUCER, requestID, err)
		case p.state != attached:
			r.fail(pulsarproto.BaseCommand_PRODUCER, requestID, notReady("Producer", p.state))
		default:
			r.answerProducer(requestID, p)
		}
	})
}

// attachProducer asks the topic and answers the request.
func (r request) attachProducer(p *producer, name topicname.Name, cmd *pulsarproto.CommandProducer) {
	defer p.cancel()
	defer close(p.settled)
	topic, info, err := r.openProducer(p, name, cmd)
	if err == nil {
		err = r.producerAttached(p, topic, info)
	} else {
		p.forget()
	}
	if err != nil {
		r.out.detachProducer(p)
		r.failProducer(p, err)
	}
}

func (r request) openProducer(p *producer, name topicname.Name, cmd *pulsarproto.CommandProducer) (Producer, ProducerInfo, error) {
	if err := p.right.check(p.ctx); err != nil {
		return nil, ProducerInfo{}, err
	}
	return r.services.Topics.Produce(p.ctx, name, r.caller, cmd, p)
}

// producerAttached answers the request, unless the producer was closed or disconnected meanwhile. It holds mu from the
// new state to the answer, so that CLOSE_PRODUCER cannot come before PRODUCER_SUCCESS.
func (r request) producerAttached(p *producer, topic Producer, info ProducerInfo) error {
	r.mu.Lock()
	state := p.state
	switch state {
	case attaching:
		p.topic, p.info, p.state = topic, info, attached
		if p.queued {
			r.out.queue(producerSuccess(p.asked, info))
		} else {
			r.answerProducer(p.asked, p)
		}
	case detaching:
		p.topic = topic
	case lost:
		p.remove()
	}
	r.mu.Unlock()
	switch state {
	case attaching:
		return nil
	case lost:
		topic.Close()
	}
	return notReady("Producer", state)
}

// failProducer answers the request of p with an ERROR frame. One that had its first answer is counted no more.
func (r request) failProducer(p *producer, err error) {
	r.mu.Lock()
	queued := p.queued
	r.mu.Unlock()
	if !queued {
		r.fail(pulsarproto.BaseCommand_PRODUCER, p.asked, err)
		return
	}
	code, text := r.failure(pulsarproto.BaseCommand_PRODUCER, err, false)
	r.out.queue(func(b []byte) []byte { return pulsarproto.AppendError(b, p.asked, code, text) })
}

// Queued implements ProducerClient: the first answer tells that the producer is not ready, and a second one with the same request
// id follows when it is. A client may wait for it as long as it likes, so the request is not counted meanwhile.
//
// Source: ServerCnx.buildProducerAndAddTopic, producerQueuedFuture.
func (p *producer) Queued(info ProducerInfo) {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	if p.queued {
		return
	}
	p.queued = true
	p.request.answer(producerSuccess(p.asked, info))
}

// answerProducer answers PRODUCER with success. mu is held.
func (r request) answerProducer(requestID uint64, p *producer) {
	r.answer(producerSuccess(requestID, p.info))
}

func producerSuccess(requestID uint64, info ProducerInfo) func([]byte) []byte {
	return func(b []byte) []byte {
		return pulsarproto.AppendProducerSuccess(b, pulsarproto.ProducerSuccess{
			RequestID:      requestID,
			ProducerName:   info.Name,
			LastSequenceID: info.LastSequenceID,
			SchemaVersion:  info.SchemaVersion,
			TopicEpoch:     info.TopicEpoch,
			HasTopicEpoch:  info.HasTopicEpoch,
			Ready:          info.Ready,
		})
	}
}

// closeProducer detaches a producer for its client, when what it has sent is answered, and answers when it is detached. An unknown
// one is detached already.
//
// Source: PulsarApi.proto CommandCloseProducer; ServerCnx.handleCloseProducer; Producer.close, pendingPublishAcks.
func (r request) closeProducer(cmd *pulsarproto.CommandCloseProducer) {
	r.mu.Lock()
	p := r.producers[cmd.GetProducerId()]
	first := p != nil && p.leave()
	r.mu.Unlock()
	if p == nil {
		r.succeed(cmd.GetRequestId())
		return
	}
	r.requests.Go(func() {
		if first {
			r.out.waitForReceipts(p)
			r.detachProducer(p)
		}
		r.succeed(cmd.GetRequestId())
	})
}

// detachProducer ends p, whose state is detaching.
func (s *session) detachProducer(p *producer) {
	p.cancel()
	<-p.settled
	s.mu.Lock()
	topic := p.topic
	s.mu.Unlock()
	if topic != nil {
		topic.Close()
	}
	s.out.detachProducer(p)
	s.mu.Lock()
	p.remove()
	s.mu.Unlock()
}

// Receipt implements ProducerClient.
func (p *producer) Receipt(sequenceID, highestSequenceID, ledgerID, entryID uint64) {
	p.session.out.receipt(p, func(b []byte) []byte {
		return pulsarproto.AppendSendReceipt(b, pulsarproto.SendReceipt{
			ProducerID:        p.id,
			SequenceID:        sequenceID,
			HighestSequenceID: highestSequenceID,
			LedgerID:          ledgerID,
			EntryID:           entryID,
		})
	})
}

// SendError implements ProducerClient.
func (p *producer) SendError(sequenceID uint64, err error) {
	code, text := p.session.failure(pulsarproto.BaseCommand_SEND, err, false)
	p.session.out.receipt(p, func(b []byte) []byte {
		return pulsarproto.AppendSendError(b, p.id, sequenceID, code, text)
	})
}

// Disconnect implements ProducerClient.
func (p *producer) Disconnect() { p.disconnect() }

// disconnect makes the client look up again and returns what was attached, which somebody has to close; nil: nothing.
func (p *producer) disconnect() Producer {
	s := p.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p.state {
	case attaching:
		p.state = lost
	case attached:
		p.state = lost
		p.remove()
		s.noteDropped(p.id)
		s.out.detachProducer(p)
		s.out.queue(func(b []byte) []byte { return pulsarproto.AppendCloseProducer(b, p.id) })
		return p.topic
	case detaching: // perhaps when its sends are answered, which they are not any more
		s.out.detachProducer(p)
	}
	return nil
}

// Alive implements ProducerClient.
func (p *producer) Alive(ctx context.Context) bool { return p.session.alive(ctx) }

// CnxID implements ProducerClient.
func (p *producer) CnxID() uint64 { return p.session.id }

// Peer implements ProducerClient.
func (p *producer) Peer() Peer { return p.session.peer() }

// maxDropped is how many disconnected producers are remembered before the old ones are looked for.
const maxDropped = 1024

// noteDropped remembers that the topic disconnected producer id: sends under way to it are ignored. mu is held.
func (s *session) noteDropped(id uint64) {
	now := time.Now()
	if len(s.droppedProducers) >= maxDropped {
		for other, at := range s.droppedProducers {
			if now.Sub(at) > s.droppedFor() {
				delete(s.droppedProducers, other)
			}
		}
	}
	if s.droppedProducers == nil {
		s.droppedProducers = make(map[uint64]time.Time)
	}
	s.droppedProducers[id] = now
}

// droppedFor is how long sends to a disconnected producer are ignored.
//
// Source: ServerCnx.safelyRemoveProducer, recentlyClosedProducers, one keep-alive interval.
func (s *session) droppedFor() time.Duration {
	if s.options.KeepAlive < 0 {
		return handshakeTimeout
	}
	return s.options.KeepAlive
}
