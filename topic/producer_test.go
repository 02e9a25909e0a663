package topic

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestProducerNames(t *testing.T) {
	w := newWorld(t)
	a, b := w.produce("a"), w.produce("a")
	if a.info.Name == "" || a.info.Name == b.info.Name || a.info.LastSequenceID != -1 || !a.info.Ready {
		t.Fatalf("attached as %+v and %+v", a.info, b.info)
	}
	p := w.produceAs("a", "p")
	name := "p"
	if _, err := w.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: &name}); !errors.Is(err, ErrProducerBusy) {
		t.Fatalf("name of a live producer: %v", err)
	}
	w.produceAs("b", "p")
	p.dead = true
	q := w.produceAs("a", "p")
	q.send(message(0, "m"))
	p.Send(message(0, "of the dead one"))
	c := w.subscribe("a", "s", earliest)
	c.want("m")
	c.wantNothing(w, "a")
}

// TestProducerReplaced: the same connection, the same id and a larger epoch replace without a probe.
func TestProducerReplaced(t *testing.T) {
	w := newWorld(t)
	p := w.produceAs("a", "p")
	name := "p"
	attach := func(epoch uint64) error {
		cnxIDs = p.cnxID - 1
		_, err := w.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: &name, Epoch: &epoch})
		return err
	}
	if err := attach(0); !errors.Is(err, ErrProducerBusy) {
		t.Fatalf("same epoch: %v", err)
	}
	if err := attach(1); err != nil {
		t.Fatal(err)
	}
}

func TestProducerRefusals(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxMessageSize = 100 })
	p := w.produce("a")
	p.Send(message(0, strings.Repeat("x", 101)))
	if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Errorf("message that is too large: %+v", r)
	}
	p.send(message(1, strings.Repeat("x", 100)))
}

func TestAdmission(t *testing.T) {
	full := errors.New("no space")
	var refuse, refuseAck error
	w := newWorld(t, func(o *Options) {
		o.Admit = func() error { return refuse }
		o.AdmitAck = func() error { return refuseAck }
	})
	p := w.produce("a")
	c := w.subscribe("a", "s")
	id := w.coord.begin()
	at := p.send(inTxn(id, message(0, "m")))
	refuse = full
	p.Send(message(1, "refused"))
	if r := p.receipt(); !errors.Is(r.err, full) {
		t.Fatalf("send without space: %+v", r)
	}
	refuseAck = full
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Individual, at)); !errors.Is(err, full) {
		t.Fatalf("ack without space: %v", err)
	}
	w.end(id, txn.Commit, "a", "")
	c.want("m")
	refuseAck = nil
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Individual, at)); err != nil {
		t.Fatalf("ack that makes space while messages are refused: %v", err)
	}
}

// A message that waited for the write before it is asked for again: there may be no space any more.
func TestAdmissionOfWhatWaits(t *testing.T) {
	full := errors.New("no space")
	var refused atomic.Bool
	asked := make(chan struct{}, 100)
	w := newWorld(t, func(o *Options) {
		o.Admit = func() error {
			asked <- struct{}{}
			if refused.Load() {
				return full
			}
			return nil
		}
	})
	p := w.produce("a")
	p.send(message(0, "m"))
	writing, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.kv.set(func(write func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		once.Do(func() {
			close(writing)
			<-goOn
		})
		return write()
	})
	p.Send(message(1, "in the write"))
	<-writing
	for len(asked) > 0 {
		<-asked
	}
	p.Send(message(2, "waits"))
	<-asked
	refused.Store(true)
	close(goOn)
	if r := p.receipt(); r.err != nil {
		t.Errorf("message in the write: %+v", r)
	}
	if r := p.receipt(); !errors.Is(r.err, full) {
		t.Errorf("message that waits: %+v", r)
	}
}

func TestInitialSubscription(t *testing.T) {
	w := newWorld(t)
	initial := "dlq"
	p, err := w.tryProduce("a", &pulsarproto.CommandProducer{InitialSubscriptionName: &initial})
	if err != nil {
		t.Fatal(err)
	}
	p.send(message(0, "m"))
	w.restart()
	w.subscribe("a", "dlq").want("m")
}
