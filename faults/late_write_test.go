package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var roundsFlag = flag.Int("rounds", 100, "rounds of FC-18")

// refusedFor requires a definite refusal of something in a transaction that has ended.
func (f *fixture) refusedFor(what string, err error) {
	f.Helper()
	switch codeOf(err) {
	case pulsarproto.ServerError_NotAllowedError, pulsarproto.ServerError_InvalidTxnStatus, pulsarproto.ServerError_TransactionNotFound:
		return
	}
	f.Fatalf("%s: answered %v, want a refusal", what, err)
}

// FC-17: nothing is stored and nothing held in a transaction that has ended or never was.
func TestFC17UseOfEndedTransaction(t *testing.T) {
	for name, make := range map[string]func(f *fixture, client *wiretopic.Client, used *wiretopic.Producer) txn.ID{
		"committed": func(f *fixture, client *wiretopic.Client, used *wiretopic.Producer) txn.ID {
			id := f.begin(client, longTTL, "")
			f.send(used, "good", &id)
			f.end(client, id, txn.Commit, success)
			return id
		},
		"aborted": func(f *fixture, client *wiretopic.Client, used *wiretopic.Producer) txn.ID {
			id := f.begin(client, longTTL, "")
			f.send(used, "bad", &id)
			f.end(client, id, txn.Abort, success)
			return id
		},
		"timed out": func(f *fixture, client *wiretopic.Client, used *wiretopic.Producer) txn.ID {
			id := f.begin(client, 3*time.Second, "")
			f.send(used, "bad", &id)
			f.await("the deadline aborts it", func() bool { return f.describe(id).State == txn.Aborted.String() })
			return id
		},
		"never issued": func(f *fixture, client *wiretopic.Client, _ *wiretopic.Producer) txn.ID {
			id := f.begin(client, longTTL, "")
			f.end(client, id, txn.Abort, success)
			id.Least += 1000
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			client := f.dial()
			a, b := f.produce(client, topic("a")), f.produce(client, topic("b"))
			f.send(a, "first", nil)
			consumer := f.subscribe(client, topic("a"), "s")
			first := f.receive(consumer, "first")
			id := make(f, client, a)

			_, err := a.Send(f.ctx, "late", &id)
			f.refusedFor("SEND to a participant", err)
			_, err = b.Send(f.ctx, "late", &id)
			f.refusedFor("SEND to another topic", err)
			f.refusedFor("ACK", consumer.Ack(f.ctx, first.ID, &id))
			_, err = client.Call(f.ctx, wireclient.AddPartitions(id, topic("c")))
			f.refusedFor("ADD_PARTITION", err)
			f.send(a, "plain", nil)
			f.send(b, "plain", nil)

			want := []string{"first", "plain"}
			if name == "committed" {
				want = []string{"first", "good", "plain"}
			}
			f.holds(topic("a"), want...)
			f.holds(topic("b"), "plain")
			// Nobody holds the first message: it can be acknowledged.
			next := f.begin(client, longTTL, "")
			f.want("ACK in another transaction", consumer.Ack(f.ctx, first.ID, &next), success)
			f.end(client, next, txn.Commit, success)
		})
	}
}

// FC-18: a message of a transaction that ends at the same moment is either part of its outcome or refused, and the topic goes
// on, also when nobody has a memory of ended transactions.
func TestFC18WriteBesideEnd(t *testing.T) {
	f := newFixture(t)
	const restartEvery = 25
	var s *beside
	for round := range *roundsFlag {
		if round%restartEvery == 0 {
			if round > 0 {
				f.Kill()
				f.Start()
			}
			s = newBeside(f)
		}
		s.round(round)
	}
}

// beside is two connections to one topic, one that sends and one that ends.
type beside struct {
	*fixture
	sending, ending *wiretopic.Client
	producer        *wiretopic.Producer
	consumer        *wiretopic.Consumer
}

func newBeside(f *fixture) *beside {
	f.Helper()
	s := &beside{fixture: f, sending: f.dial(), ending: f.dial()}
	s.producer = f.produce(s.sending, topic("t1"))
	s.consumer = f.subscribe(s.ending, topic("t1"), "s")
	return s
}

func (s *beside) round(round int) {
	s.Helper()
	const sends = 20
	way := []string{"abort", "commit", "deadline"}[round%3]
	ttl := longTTL
	if way == "deadline" {
		ttl = time.Duration(1+rand.IntN(10)) * time.Millisecond
	}
	id := s.begin(s.sending, ttl, "")
	answers := make([]chan error, sends)
	started := make(chan struct{}, sends)
	for i := range answers {
		answers[i] = make(chan error, 1)
	}
	go func() {
		for i, answer := range answers {
			s.producer.Start(fmt.Sprintf("%d-%d", round, i), &id, func(_ *pulsarproto.MessageIdData, err error) { answer <- err })
			started <- struct{}{}
		}
	}()
	for range rand.IntN(sends) {
		<-started
	}
	outcome := txn.Abort // of a deadline, too
	if way == "commit" {
		outcome = txn.Commit
	}
	s.end(s.ending, id, outcome, success)
	var want []string
	for i, answer := range answers {
		err := s.answer(answer)
		if err != nil {
			s.refusedFor(fmt.Sprintf("round %d (%s): SEND %d", round, way, i), err)
			continue
		}
		if outcome == txn.Commit {
			want = append(want, fmt.Sprintf("%d-%d", round, i))
		}
	}
	plain := fmt.Sprintf("plain %d", round)
	s.send(s.producer, plain, nil)
	if got := s.receiveTo(plain); !slices.Equal(got, want) {
		s.Fatalf("round %d (%s): got %q, want %q", round, way, got, want)
	}
}

var errSilence = errors.New("no answer")

func (s *beside) answer(answer <-chan error) error {
	timer := time.NewTimer(waitTime)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		return errSilence
	}
}

// receiveTo receives and acknowledges what comes up to the message last.
func (s *beside) receiveTo(last string) []string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, waitTime)
	defer cancel()
	var got []string
	for {
		message, err := s.consumer.Receive(ctx)
		if err != nil {
			s.Fatalf("after %s instead of %s: %v", strings.Join(got, " "), last, err)
		}
		s.want("ACK", s.consumer.Ack(s.ctx, message.ID, nil), success)
		if message.Content == last {
			return got
		}
		got = append(got, message.Content)
	}
}
