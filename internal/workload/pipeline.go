package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	pipelineStages = 3
	pipelineKeys   = 17
	// pipelineBatch is how many messages one transaction moves at most.
	pipelineBatch = 100
)

// Pipeline is three consume-transform-produce stages of the official client, through which messages pass: each once, in order
// per key, whatever the servers go through. A stage that lost the answer to its commit asks again by TxnID on a connection of its
// own, and builds on what it hears (promises 1 to 4).
type Pipeline struct {
	t           *testing.T
	addrs       []string // where clients begin, host:port
	total       int
	requestTime time.Duration

	transactions, repeated, asked, moved atomic.Int64
}

// NewPipeline returns a pipeline for a number of messages. requestTime bounds one operation.
func NewPipeline(t *testing.T, addrs []string, total int, requestTime time.Duration) *Pipeline {
	return &Pipeline{t: t, addrs: addrs, total: total, requestTime: requestTime}
}

// Run returns when all messages have passed, or ctx is done.
func (p *Pipeline) Run(ctx context.Context) {
	var stages sync.WaitGroup
	stages.Go(func() { p.stage(ctx, 0, p.feed) })
	for i := 1; i <= pipelineStages; i++ {
		stages.Go(func() { p.stage(ctx, i, p.move) })
	}
	stages.Wait()
}

// Interrupted is how many transactions were begun again, or were committed without an answer at first.
func (p *Pipeline) Interrupted() int64 { return p.repeated.Load() + p.asked.Load() }

// Moved is how many messages were moved by one stage, of all stages together.
func (p *Pipeline) Moved() int64 { return p.moved.Load() }

func (p *Pipeline) entry() string { return p.addrs[rand.IntN(len(p.addrs))] }

func pipelineTopic(stage int) string {
	return fmt.Sprintf("persistent://public/default/stage-%d", stage)
}

// stage moves all messages, one session of the client after the other: a session ends with the first failure.
func (p *Pipeline) stage(ctx context.Context, stage int, batch func(context.Context, *pipelineSession) error) {
	for done := 0; done < p.total && ctx.Err() == nil; {
		session := &pipelineSession{Pipeline: p, stage: stage, done: done}
		err := session.run(ctx, batch)
		done = session.done
		if err != nil && ctx.Err() == nil {
			Pause(ctx, 50*time.Millisecond)
		}
	}
}

// pipelineSession is one client of a stage.
type pipelineSession struct {
	*Pipeline
	stage    int
	done     int // messages that this stage has moved for good
	client   pulsar.Client
	consumer pulsar.Consumer // nil in the first stage, which makes the messages
	producer pulsar.Producer
}

func (s *pipelineSession) run(ctx context.Context, batch func(context.Context, *pipelineSession) error) (err error) {
	if s.client, err = NewOfficialClient(s.entry()); err != nil {
		return err
	}
	defer s.client.Close()
	if err := Bounded(ctx, s.requestTime, s.attach); err != nil {
		return err
	}
	for s.done < s.total && ctx.Err() == nil {
		if err := batch(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (s *pipelineSession) attach() (err error) {
	if s.stage > 0 {
		s.consumer, err = s.client.Subscribe(pulsar.ConsumerOptions{
			Topic: pipelineTopic(s.stage - 1), SubscriptionName: "pipeline", Type: pulsar.Exclusive,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		if err != nil {
			return err
		}
	}
	s.producer, err = s.client.CreateProducer(pulsar.ProducerOptions{
		Topic: pipelineTopic(s.stage), DisableBatching: true, SendTimeout: OfficialTime,
	})
	return err
}

// feed sends the next messages of the input.
func (p *Pipeline) feed(ctx context.Context, s *pipelineSession) error {
	var out []*pulsar.ProducerMessage
	for n := s.done; n < min(s.done+pipelineBatch, p.total); n++ {
		out = append(out, &pulsar.ProducerMessage{Key: "key-" + strconv.Itoa(n%pipelineKeys), Payload: []byte(strconv.Itoa(n))})
	}
	return s.transaction(ctx, nil, out)
}

// move takes what has arrived, up to a batch, to the next topic.
func (p *Pipeline) move(ctx context.Context, s *pipelineSession) error {
	var in []pulsar.Message
	var out []*pulsar.ProducerMessage
	for len(in) < pipelineBatch {
		soon, cancel := context.WithTimeout(ctx, messagePause)
		message, err := s.consumer.Receive(soon)
		cancel()
		if err != nil {
			break
		}
		in = append(in, message)
		out = append(out, &pulsar.ProducerMessage{Key: message.Key(), Payload: message.Payload()})
	}
	if len(in) == 0 {
		return nil
	}
	return s.transaction(ctx, in, out)
}

// transaction acknowledges in and sends out. When it returns, its fate is known.
func (s *pipelineSession) transaction(ctx context.Context, in []pulsar.Message, out []*pulsar.ProducerMessage) error {
	opened := make(chan pulsar.Transaction, 1)
	if err := Bounded(ctx, s.requestTime, func() error {
		t, err := s.client.NewTransaction(time.Minute)
		opened <- t
		return err
	}); err != nil {
		return err
	}
	t := <-opened
	id := txn.ID{Most: t.GetTxnID().MostSigBits, Least: t.GetTxnID().LeastSigBits}
	s.transactions.Add(1)
	if err := Bounded(ctx, s.requestTime, func() error { return s.work(ctx, t, in, out) }); err != nil {
		s.repeated.Add(1)
		if !s.ask(ctx, id, txn.Abort) && ctx.Err() == nil {
			s.t.Errorf("%v is committed, and nobody asked for it", id)
		}
		return err
	}
	err := Bounded(ctx, s.requestTime, func() error { return t.Commit(ctx) })
	committed := err == nil
	if !committed {
		s.asked.Add(1)
		committed = s.ask(ctx, id, txn.Commit)
	}
	if committed {
		s.done += len(out)
		s.moved.Add(int64(len(out)))
	}
	return err
}

func (s *pipelineSession) work(ctx context.Context, t pulsar.Transaction, in []pulsar.Message, out []*pulsar.ProducerMessage) error {
	results := make(chan error, len(in)+len(out))
	for _, message := range out {
		message.Transaction = t
		s.producer.SendAsync(ctx, message, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { results <- err })
	}
	for _, message := range in {
		go func() { results <- s.consumer.AckWithTxn(message, t) }()
	}
	for range cap(results) {
		select {
		case err := <-results:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ask ends id on connections of its own until the answer is definite, and reports whether action is the outcome.
func (p *Pipeline) ask(ctx context.Context, id txn.ID, action txn.Action) bool {
	for ctx.Err() == nil {
		err := p.askOnce(ctx, id, action)
		var refused *wireclient.ServerError
		switch {
		case err == nil:
			return true
		case errors.As(err, &refused) && refused.Code == pulsarproto.ServerError_InvalidTxnStatus:
			return false
		case errors.As(err, &refused) && refused.Code == pulsarproto.ServerError_TransactionNotFound:
			p.t.Errorf("the outcome of %v is forgotten: %v", id, err)
			return false
		}
		Pause(ctx, 50*time.Millisecond)
	}
	return false
}

func (p *Pipeline) askOnce(ctx context.Context, id txn.ID, action txn.Action) (err error) {
	ctx, cancel := context.WithTimeout(ctx, p.requestTime)
	defer cancel()
	conn, err := wireclient.DialTC(ctx, "pulsar://"+p.entry(), id.Most)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.End(ctx, id, action, "")
}

// Verify reads what came out of the pipeline.
func (p *Pipeline) Verify(ctx context.Context) {
	p.t.Logf("%d messages, %d transactions, %d of them repeated, %d commits asked again",
		p.total, p.transactions.Load(), p.repeated.Load(), p.asked.Load())
	client, err := NewOfficialClient(p.entry())
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: pipelineTopic(pipelineStages), StartMessageID: pulsar.EarliestMessageID()})
	if err != nil {
		p.t.Fatal(err)
	}
	seen, last := make([]int, p.total), map[string]int{}
	for reader.HasNext() {
		message, err := reader.Next(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		n, err := strconv.Atoi(string(message.Payload()))
		if err != nil || n < 0 || n >= p.total {
			p.t.Fatalf("a message that nobody sent: %q", message.Payload())
		}
		if before, some := last[message.Key()]; some && n <= before {
			p.t.Errorf("%s: %d comes after %d", message.Key(), n, before)
		}
		last[message.Key()] = n
		seen[n]++
	}
	for n, times := range seen {
		if times != 1 {
			p.t.Errorf("message %d came out %d times", n, times)
		}
	}
}
