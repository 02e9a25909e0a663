package server

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-48: with the smallest quota and messages as fast as they go, data is refused first and new transactions next, every
// open transaction ends, and all is well again when there is space, without a restart.
func TestReservesOfTheSmallestQuota(t *testing.T) {
	s := start(t, load(t, "etcdQuotaBytes=67108864"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client, producer := produce(ctx, t, s)

	var err error
	open := make([]txn.ID, 500)
	for i := range open {
		if open[i], err = client.Begin(ctx, 0, 600_000, ""); err != nil {
			t.Fatal(err)
		}
		if _, err = producer.Send(ctx, "message", &open[i]); err != nil {
			t.Fatal(err)
		}
	}
	message := strings.Repeat("x", 200<<10)
	for !lasts(t, s, etcdstore.RefuseData) {
		if producer, err = sendOrAgain(ctx, t, client, producer, message, nil); err != nil && !notReady(err) {
			t.Fatal(err)
		}
	}
	if _, err = producer.Send(ctx, message, nil); !notReady(err) {
		t.Fatalf("message when data is refused: %v", err)
	}
	last, err := client.Begin(ctx, 0, 600_000, "")
	if err != nil {
		t.Fatalf("new transaction while data is refused: %v", err)
	}

	fill(t, s, etcdstore.RefuseNew)
	if _, err = client.Begin(ctx, 0, 600_000, ""); !notReady(err) {
		t.Fatalf("new transaction when it is refused: %v", err)
	}
	for i, id := range append(open, last) {
		if err := client.End(ctx, id, txn.Action(i%2), ""); err != nil {
			t.Fatalf("end %d of %d: %v, in space %v", i, len(open)+1, err, s.store.Space())
		}
	}

	if _, err := s.store.Client().Delete(ctx, fillPrefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	for err = errors.New("not asked"); err != nil && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		_, err = client.Begin(ctx, 0, 600_000, "")
	}
	if err != nil {
		t.Fatalf("new transaction when there is space again: %v", err)
	}
}

// fillPrefix begins keys that are nobody's.
const fillPrefix = "fill/"

// fill stores bytes until the store refuses so much for good.
func fill(t *testing.T, s *Server, want etcdstore.Space) {
	t.Helper()
	value := strings.Repeat("x", 50<<10)
	for i := 0; !lasts(t, s, want); i++ {
		if _, err := s.store.Client().Put(t.Context(), fillPrefix+strconv.Itoa(i), value); err != nil {
			t.Fatal(err)
		}
		s.store.Wrote(len(value))
	}
}

// lasts reports whether a state is there and stays when all that was written is counted for what it is. More must not be
// refused at any time.
func lasts(t *testing.T, s *Server, want etcdstore.Space) bool {
	t.Helper()
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got := s.store.Space()
		if got > want {
			t.Fatalf("%v, want %v before", got, want)
		}
		if got < want {
			return false
		}
	}
	return true
}

func notReady(err error) bool {
	var refusal *wireclient.ServerError
	return errors.As(err, &refusal) && refusal.Code == pulsarproto.ServerError_ServiceNotReady
}

// FC-48: the messages of an aborted transaction make room for others.
func TestAbortMakesSpace(t *testing.T) {
	s := start(t, load(t, "etcdQuotaBytes=67108864"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client, producer := produce(ctx, t, s)
	id, err := client.Begin(ctx, 0, 600_000, "")
	if err != nil {
		t.Fatal(err)
	}
	message := strings.Repeat("x", 200<<10)
	for !lasts(t, s, etcdstore.RefuseData) {
		if producer, err = sendOrAgain(ctx, t, client, producer, message, &id); err != nil && !notReady(err) {
			t.Fatal(err)
		}
	}
	if err := client.End(ctx, id, txn.Abort, ""); err != nil {
		t.Fatal(err)
	}
	for sent := 0; sent < 100; { // 20 MB, of the quarter that was left
		if producer, err = sendOrAgain(ctx, t, client, producer, message, nil); err == nil {
			sent++
			continue
		}
		if !notReady(err) {
			t.Fatalf("message %d when there is space again: %v", sent, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sendOrAgain sends, and attaches a new producer if the message is refused for now: such a refusal ends its producer.
func sendOrAgain(ctx context.Context, t *testing.T, client *wiretopic.Client, p *wiretopic.Producer, message string, id *txn.ID) (*wiretopic.Producer, error) {
	t.Helper()
	_, err := p.Send(ctx, message, id)
	if !notReady(err) {
		return p, err
	}
	again, attachErr := client.Produce(ctx, "topic")
	if attachErr != nil {
		t.Fatal(attachErr)
	}
	return again, err
}

func produce(ctx context.Context, t *testing.T, s *Server) (*wiretopic.Client, *wiretopic.Producer) {
	t.Helper()
	client := dial(ctx, t, s)
	producer, err := client.Produce(ctx, "topic")
	if err != nil {
		t.Fatal(err)
	}
	return client, producer
}
