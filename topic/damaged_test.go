package topic

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// damage flips a bit of each stored block of a topic that begins at one of at, each position counted from 0.
func (w *world) damage(name string, at ...int) {
	w.t.Helper()
	got, err := storeClient.Get(context.Background(), w.space(name).EntryPrefix(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range at {
		value := got.Kvs[i].Value
		value[len(value)/2] ^= 1
		if _, err := storeClient.Put(context.Background(), string(got.Kvs[i].Key), string(value)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestDamagedEntry: what stands before an entry whose stored bytes are damaged is delivered, the entry never is, nor what stands
// behind it until the cursor is moved: by an acknowledgement, or a seek. A topic with one is not compacted.
func TestDamagedEntry(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(message(0, "before"))
	damaged := p.send(message(1, "damaged"))
	last := p.send(message(2, "behind"))
	w.damage("a", 1)
	w.restart()
	c := w.subscribe("a", "s", earliest)
	c.Flow(10)
	c.want("before")
	other := w.subscribe("a", "t", earliest)
	other.Flow(10)
	other.want("before")
	if at, _ := c.lastMessageID(); at != last {
		t.Errorf("last message %v, want %v", at, last)
	}
	c.ack(damaged)
	c.want("behind")
	other.seek(&pulsarproto.CommandSeek{MessageId: idOf(last)})
	again := w.subscribe("a", "t")
	again.Flow(10)
	again.want("behind")
	if _, err := w.topics.Entry(context.Background(), parse(t, "a"), damaged.Ledger, damaged.Entry); err == nil {
		t.Error("the damaged entry is shown")
	}
	if status := w.compact("a"); status.State != "ERROR" {
		t.Errorf("a compaction that cannot read everything ends as %+v", status)
	}
}
