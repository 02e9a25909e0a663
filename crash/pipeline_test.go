//go:build !race

package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var pipelineFlag = flag.Int("pipeline", 2000, "messages that go through the pipeline")

const (
	pipelineStages = 3
	pipelineKeys   = 17
	// pipelineBatch is how many messages one transaction moves at most.
	pipelineBatch = 100
	// pipelineTime bounds the whole run.
	pipelineTime = 5 * time.Minute
	// requestTime bounds one operation, long enough for the server to start again and answer.
	requestTime = 20 * time.Second
	// messagePause is how long a batch waits for one more message.
	messagePause = 20 * time.Millisecond
)

// Messages pass a pipeline of three consume-transform-produce stages with the official Go client while the server is killed
// with -9 every few seconds: each arrives once, in order per key. A stage that lost the answer to its commit asks again by
// TxnID on a connection of its own, and builds on what it hears (promises 1 to 4).
func TestPipelineDeliversEachOnce(t *testing.T) {
	s := newInstance(t, binaries.Ordinary(t))
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), pipelineTime)
	defer cancel()
	p := &pipeline{t: t, server: s, addr: strings.TrimPrefix(s.Server.ServiceURL, "pulsar://"), total: *pipelineFlag}
	killing, stopKilling := context.WithCancel(ctx)
	var killer, stages sync.WaitGroup
	killer.Go(func() { p.kill(killing) })
	stages.Go(func() { p.stage(ctx, 0, p.feed) })
	for i := 1; i <= pipelineStages; i++ {
		stages.Go(func() { p.stage(ctx, i, p.move) })
	}
	stages.Wait()
	stopKilling()
	killer.Wait()
	if ctx.Err() != nil {
		t.Fatalf("not all messages passed in %v", pipelineTime)
	}
	p.verify(ctx)
	t.Logf("%d messages, %d kills, %d transactions, %d of them repeated, %d commits asked again",
		p.total, p.kills, p.transactions.Load(), p.repeated.Load(), p.asked.Load())
	if p.kills == 0 || p.asked.Load()+p.repeated.Load() == 0 {
		t.Error("no kill interrupted a transaction: the run shows nothing")
	}
}

type pipeline struct {
	t      *testing.T
	server *process.Instance
	addr   string
	total  int
	kills  int

	transactions, repeated, asked atomic.Int64
}

func (p *pipeline) kill(ctx context.Context) {
	for {
		workload.Pause(ctx, time.Duration(1500+rand.IntN(2500))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		p.server.Kill()
		p.server.Start()
		p.kills++
	}
}

func pipelineTopic(stage int) string {
	return fmt.Sprintf("persistent://public/default/stage-%d", stage)
}

// stage moves all messages, one session of the client after the other: a session ends with the first failure.
func (p *pipeline) stage(ctx context.Context, stage int, batch func(context.Context, *pipelineSession) error) {
	for done := 0; done < p.total && ctx.Err() == nil; {
		session := &pipelineSession{pipeline: p, stage: stage, done: done}
		err := session.run(ctx, batch)
		done = session.done
		if err != nil && ctx.Err() == nil {
			workload.Pause(ctx, 50*time.Millisecond)
		}
	}
}

// pipelineSession is one client of a stage.
type pipelineSession struct {
	*pipeline
	stage    int
	done     int // messages that this stage has moved for good
	client   pulsar.Client
	consumer pulsar.Consumer // nil in the first stage, which makes the messages
	producer pulsar.Producer
}

func (s *pipelineSession) run(ctx context.Context, batch func(context.Context, *pipelineSession) error) (err error) {
	if s.client, err = workload.NewOfficialClient(s.addr); err != nil {
		return err
	}
	defer s.client.Close()
	if err := workload.Bounded(ctx, requestTime, s.attach); err != nil {
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
		Topic: pipelineTopic(s.stage), DisableBatching: true, SendTimeout: workload.OfficialTime,
	})
	return err
}

// feed sends the next messages of the input.
func (p *pipeline) feed(ctx context.Context, s *pipelineSession) error {
	var out []*pulsar.ProducerMessage
	for n := s.done; n < min(s.done+pipelineBatch, p.total); n++ {
		out = append(out, &pulsar.ProducerMessage{Key: "key-" + strconv.Itoa(n%pipelineKeys), Payload: []byte(strconv.Itoa(n))})
	}
	return s.transaction(ctx, nil, out)
}

// move takes what has arrived, up to a batch, to the next topic.
func (p *pipeline) move(ctx context.Context, s *pipelineSession) error {
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
	if err := workload.Bounded(ctx, requestTime, func() error {
		t, err := s.client.NewTransaction(time.Minute)
		opened <- t
		return err
	}); err != nil {
		return err
	}
	t := <-opened
	id := txn.ID{Most: t.GetTxnID().MostSigBits, Least: t.GetTxnID().LeastSigBits}
	s.transactions.Add(1)
	if err := workload.Bounded(ctx, requestTime, func() error { return s.work(ctx, t, in, out) }); err != nil {
		s.repeated.Add(1)
		if !s.ask(ctx, id, txn.Abort) && ctx.Err() == nil {
			s.t.Errorf("%v is committed, and nobody asked for it", id)
		}
		return err
	}
	err := workload.Bounded(ctx, requestTime, func() error { return t.Commit(ctx) })
	committed := err == nil
	if !committed {
		s.asked.Add(1)
		committed = s.ask(ctx, id, txn.Commit)
	}
	if committed {
		s.done += len(out)
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
func (p *pipeline) ask(ctx context.Context, id txn.ID, action txn.Action) bool {
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
		workload.Pause(ctx, 50*time.Millisecond)
	}
	return false
}

func (p *pipeline) askOnce(ctx context.Context, id txn.ID, action txn.Action) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	conn, err := wireclient.DialTC(ctx, "pulsar://"+p.addr, id.Most)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.End(ctx, id, action, "")
}

// verify reads what came out of the pipeline.
func (p *pipeline) verify(ctx context.Context) {
	client, err := workload.NewOfficialClient(p.addr)
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
