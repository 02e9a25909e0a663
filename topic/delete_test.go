package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestDelete: a deleted topic is gone with its data, and a topic of the same name is another one.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	if err := w.topics.DeleteTopic(ctx, name, false); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("delete what is not there: %v", err)
	}
	p := w.produce("t")
	first := p.send(message(0, "old"))
	keys := w.space("t")
	if err := w.topics.DeleteTopic(ctx, name, false); !errors.Is(err, ErrTopicBusy) {
		t.Fatalf("delete with a producer: %v", err)
	}
	p.send(message(1, "still there"))
	c := w.subscribe("t", "s", earliest)
	if err := w.topics.DeleteTopic(ctx, name, true); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	if exists, err := w.topics.TopicExists(ctx, name); exists || err != nil {
		t.Fatalf("exists %v, %v", exists, err)
	}
	eventually(t, "data and tombstone are gone", func() bool {
		return w.keysUnder(keys.Prefix()) == 0 && w.keysUnder(w.keys.DeletedPrefix()) == 0
	})
	again := w.produce("t").send(message(0, "new"))
	if !first.Before(again) {
		t.Fatalf("position %v behind %v", again, first)
	}
	w.subscribe("t", "s", earliest).want("new")
}

// TestDeletePartitioned: all partitions go at once, those that nobody used among them.
func TestDeletePartitioned(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "p")
	if err := w.topics.CreatePartitioned(ctx, name, 3, nil); err != nil {
		t.Fatal(err)
	}
	p := w.produce("p-partition-1")
	p.send(message(0, "m"))
	if err := w.topics.DeletePartitioned(ctx, name, false); !errors.Is(err, ErrTopicBusy) {
		t.Fatalf("with a producer: %v", err)
	}
	if err := w.topics.DeletePartitioned(ctx, name, true); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	got, err := w.topics.TopicsOfNamespace(ctx, "public/default", 0)
	if err != nil || len(got) != 0 {
		t.Fatalf("topics %q, %v", got, err)
	}
	if err := w.topics.DeletePartitioned(ctx, name, true); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("again: %v", err)
	}
	w.produce("p").send(message(0, "plain"))
}

// TestUnload: nothing is lost and nothing is delivered twice to a subscription whose acknowledgements were answered.
func TestUnload(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	p, c := w.produce("t"), w.subscribe("t", "s")
	at := p.send(message(0, "a"))
	c.want("a")
	c.ack(at)
	p.send(message(1, "b"))
	if err := w.topics.Unload(ctx, name); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	w.subscribe("t", "s").want("b")
	if err := w.topics.Unload(ctx, parse(t, "none")); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("unload what is not there: %v", err)
	}
}

// TestTerminate: what was sent before is stored, nothing behind it, for ever.
func TestTerminate(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	p := w.produce("t")
	w.subscribe("t", "s")
	last := p.send(message(0, "a"))
	got, err := w.topics.Terminate(ctx, name)
	if err != nil || (ledger.Position{Ledger: got.GetLedgerId(), Entry: got.GetEntryId()}) != last {
		t.Fatalf("terminated at %v, %v, want %v", got, err, last)
	}
	happens(t, p.disconnected)
	w.restart()
	if _, err := w.tryProduce("t", nil); !errors.Is(err, ErrTopicTerminated) {
		t.Fatalf("produce: %v", err)
	}
	c := w.subscribe("t", "s")
	c.want("a")
	if len(c.ends) != 0 {
		t.Fatal("end of the topic before the last acknowledgement")
	}
	c.ack(last)
	happens(t, c.ends)
}

// TestLoadMeetsDeletion: a load that has looked up a topic which is deleted right then finds a new one, or none.
func TestLoadMeetsDeletion(t *testing.T) {
	for _, create := range []bool{true, false} {
		kv := &beforeCreation{KV: storeClient.KV}
		w := newWorld(t, func(o *Options) { o.KV = kv; o.AllowAutoTopicCreation = create })
		ctx, name := context.Background(), parse(t, "t")
		other := New(Options{KV: storeClient.KV, Keys: w.keys, Registrar: w.coord, Log: w.options.Log})
		if err := other.CreateTopic(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
		meanwhile := func() {
			if err := other.DeleteTopic(ctx, name, false); err != nil {
				t.Error(err)
			}
		}
		kv.once.Store(&meanwhile)
		p, err := w.tryProduce("t", nil)
		if !create {
			if !errors.Is(err, ErrTopicNotFound) {
				t.Fatalf("a deleted topic was loaded: %v", err)
			}
		} else if err != nil {
			t.Fatal(err)
		} else {
			p.send(message(0, "m"))
		}
		other.Close(ctx)
		eventually(t, "no data without a name", func() bool {
			return w.keysUnder(w.keys.Topics()+"data/") == 0 || create && w.keysUnder(w.space("t").Prefix()) == w.keysUnder(w.keys.Topics()+"data/")
		})
	}
}

// TestProducerRacesDeletion: whoever produces while the topic is deleted again and again is refused or writes to a topic that is
// there: what can be read in the end are the last messages that were answered, all of one topic, in order.
func TestProducerRacesDeletion(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	var answered []string
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p, err := w.tryProduce("t", nil)
			if err != nil {
				continue
			}
			for j := range uint64(3) {
				payload := fmt.Sprint(i, "/", j)
				p.Send(message(j, payload))
				select {
				case r := <-p.receipts:
					if r.err == nil {
						answered = append(answered, payload)
					}
				case <-p.disconnected:
				}
			}
			p.Close()
		}
	}()
	for range 50 {
		if err := w.topics.DeleteTopic(ctx, name, true); err != nil && !errors.Is(err, ErrTopicNotFound) {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	p := w.produce("t")
	p.send(message(1000, "end"))
	c := w.subscribe("t", "s", earliest)
	var got []string
	for len(got) == 0 || got[len(got)-1] != "end" {
		got = append(got, string(c.next().Payload))
	}
	got = got[:len(got)-1]
	if len(got) > len(answered) || !slices.Equal(got, answered[len(answered)-len(got):]) {
		t.Fatalf("read %q, answered last %q", got, answered[max(0, len(answered)-len(got)-3):])
	}
	eventually(t, "nothing of the deleted topics is left", func() bool {
		return w.keysUnder(w.keys.DeletedPrefix()) == 0 && w.keysUnder(w.space("t").Prefix()) == w.keysUnder(w.keys.Topics()+"data/")
	})
}

// TestTerminateWithOpenTransaction: what was sent before counts, its transaction ends, and nothing comes behind.
func TestTerminateWithOpenTransaction(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		w := newWorld(t)
		p, c := w.produce("t"), w.subscribe("t", "s")
		id := w.coord.begin()
		at := p.send(inTxn(id, message(0, "open")))
		if _, err := w.topics.Terminate(context.Background(), parse(t, "t")); err != nil {
			t.Fatal(err)
		}
		if len(c.ends) != 0 {
			t.Fatal("end of the topic while a transaction is open")
		}
		w.end(id, action, "t", "")
		if action == txn.Commit {
			c.want("open")
			c.ack(at)
		}
		happens(t, c.ends)
		again, err := w.topics.Terminate(context.Background(), parse(t, "t"))
		if err != nil || again.GetEntryId() != at.Entry {
			t.Fatalf("terminated again at %v, %v", again, err)
		}
	}
}

// TestTerminateAmidSends: each send is stored before the termination or not at all, and the position tells which.
func TestTerminateAmidSends(t *testing.T) {
	w := newWorld(t)
	p := w.produce("t")
	for i := range uint64(200) {
		p.Send(message(i, fmt.Sprint(i)))
	}
	id, err := w.topics.Terminate(context.Background(), parse(t, "t"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(200) {
		p.Send(message(200+i, "late"))
	}
	happens(t, p.disconnected)
	if n := len(p.receipts); n != 200 || id.GetEntryId() != 199 {
		t.Fatalf("%d receipts, terminated at %v", n, id)
	}
	if _, err := w.tryProduce("t", nil); !errors.Is(err, ErrTopicTerminated) {
		t.Fatal(err)
	}
	last, err := w.topics.LastMessageID(context.Background(), parse(t, "t"))
	if err != nil || last.GetEntryId() != 199 {
		t.Fatalf("last message %v, %v", last, err)
	}
}

// TestTerminateWithinGroup: what waits behind a termination for the same write is not taken.
func TestTerminateWithinGroup(t *testing.T) {
	w := newWorld(t)
	p := w.produce("t")
	release := make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		<-release
		return commit()
	})
	p.Send(message(0, "in flight"))
	p.Send(message(1, "before"))
	answers := make(chan *pulsarproto.MessageIdData, 1)
	loaded := w.topics.loaded(parse(t, "t").String())
	loaded.ask(func(bool) {
		loaded.queue.push(&terminateItem{loaded, func(id *pulsarproto.MessageIdData, _ error) { answers <- id }})
	})
	p.Send(message(2, "behind"))
	close(release)
	happens(t, p.disconnected)
	if id := <-answers; id.GetEntryId() != 1 || len(p.receipts) != 2 {
		t.Fatalf("terminated at %v, %d receipts", id, len(p.receipts))
	}
	last, err := w.topics.LastMessageID(context.Background(), parse(t, "t"))
	if err != nil || last.GetEntryId() != 1 {
		t.Fatalf("last message %v, %v", last, err)
	}
}

// TestTerminateTwiceAtOnce: both are answered.
func TestTerminateTwiceAtOnce(t *testing.T) {
	w := newWorld(t)
	p := w.produce("t")
	release := w.hold()
	p.Send(message(0, "m"))
	w.posted("t")
	answers := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.topics.Terminate(context.Background(), parse(t, "t"))
			answers <- err
		}()
	}
	topic := w.topics.loaded(parse(t, "t").String())
	eventually(t, "both wait", func() bool {
		waiting := make(chan int, 1)
		topic.ask(func(bool) { waiting <- len(topic.queue.items) - topic.queue.head })
		return <-waiting == 2
	})
	release()
	for range 2 {
		if err := wait(t, answers); err != nil {
			t.Error(err)
		}
	}
}
