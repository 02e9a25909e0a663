package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// readCompacted reads the compacted view with the official reader, while there is a message: key=content of each.
func (f *fixture) readCompacted(client pulsar.Client, topic string) []string {
	f.Helper()
	return f.readWhile(client, pulsar.ReaderOptions{Topic: topic, ReadCompacted: true}, func(m pulsar.Message) string {
		return m.Key() + "=" + string(m.Payload())
	})
}

func (f *fixture) wantCompacted(when, topic string, want ...string) {
	f.Helper()
	client := f.official()
	if got := f.readCompacted(client, topic); !slices.Equal(got, want) {
		f.Errorf("%s: read %q, want %q", when, got, want)
	}
}

// FC-43: the compacted view has nothing of an open transaction and nothing behind it, before a compaction and after one; all of a
// committed one, and nothing of an aborted one.
func TestFC43CompactedReadIsCommitted(t *testing.T) {
	for action, want := range map[txn.Action][]string{
		txn.Abort:  {"K1=a", "K4=d"},
		txn.Commit: {"K1=a", "K2=b", "K3=c", "K4=d"},
	} {
		t.Run(action.String(), func(t *testing.T) {
			f := newFixture(t)
			client := f.dial()
			producer := f.produce(client, topic("t"))
			id := f.begin(client, longTTL, "")
			f.sendKeyed(producer, 0, keyed{"K1", "a"}, nil)
			f.sendKeyed(producer, 1, keyed{"K2", "b"}, &id)
			f.sendKeyed(producer, 2, keyed{"K3", "c"}, &id)
			f.sendKeyed(producer, 3, keyed{"K4", "d"}, nil)
			f.wantCompacted("open", topic("t"), "K1=a")
			f.compact(topic("t"))
			f.wantCompacted("open, compacted", topic("t"), "K1=a")
			f.end(client, id, action, success)
			f.wantCompacted("ended", topic("t"), want...)
			f.compact(topic("t"))
			f.wantCompacted("ended, compacted", topic("t"), want...)
			f.Kill()
			f.Start()
			f.wantCompacted("restarted", topic("t"), want...)
		})
	}
}

// FC-45: tombstones in batches and outside, a transaction's marker as the tail, writes beside the compaction, three compactions and
// a restart. A message without a key is kept or dropped as the setting says.
func TestFC45TombstonesBatchesAndMarkers(t *testing.T) {
	for retain, keyless := range map[string][]string{"false": nil, "true": {"=x"}} {
		t.Run("topicCompactionRetainNullKey="+retain, func(t *testing.T) {
			f := newFixture(t, "topicCompactionRetainNullKey="+retain)
			client := f.dial()
			producer := f.produce(client, topic("t"))
			f.sendBatch(producer, 0, keyed{"K1", "a"}, keyed{"K2", ""}, keyed{"", "x"})
			f.sendKeyed(producer, 1, keyed{"K3", "b"}, nil)
			f.sendKeyed(producer, 2, keyed{"K3", ""}, nil)
			id := f.begin(client, longTTL, "")
			f.sendKeyed(producer, 3, keyed{"K4", "c"}, &id)
			f.end(client, id, txn.Commit, success)

			writing, stop := context.WithCancel(f.ctx)
			written := make(chan uint64, 1)
			go func() { written <- f.writeUntil(writing, producer, 4, "K5") }()
			for range 3 {
				f.compact(topic("t"))
			}
			stop()
			last := <-written
			f.compact(topic("t"))
			want := slices.Concat([]string{"K1=a"}, keyless, []string{"K4=c", fmt.Sprint("K5=v", last)})
			f.wantCompacted("compacted", topic("t"), want...)
			f.Kill()
			f.Start()
			f.wantCompacted("restarted", topic("t"), want...)
			f.compact(topic("t"))
			f.wantCompacted("restarted and compacted", topic("t"), want...)
		})
	}
}

// writeUntil writes versions of a key with sequence ids from first on, and returns the number of the last one.
func (f *fixture) writeUntil(ctx context.Context, producer *wiretopic.Producer, first uint64, key string) uint64 {
	for n := first; ; n++ {
		if _, err := producer.SendAs(f.ctx, &pulsarproto.MessageMetadata{SequenceId: &n, PartitionKey: &key}, fmt.Sprint("v", n), nil); err != nil {
			f.Errorf("SEND beside a compaction: %v", err)
			return n
		}
		if ctx.Err() != nil {
			return n
		}
	}
}

// FC-45: a topic whose keys are all deleted is compacted to nothing, again and again, and a reader's loop ends there.
func TestFC45NothingIsLeft(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t"))
	f.sendKeyed(producer, 0, keyed{"K1", "a"}, nil)
	f.sendBatch(producer, 1, keyed{"K2", "b"}, keyed{"K1", ""})
	f.sendKeyed(producer, 2, keyed{"K2", ""}, nil)
	for round := range 3 {
		f.compact(topic("t"))
		f.wantCompacted(fmt.Sprint("compaction ", round), topic("t"))
	}
	f.Kill()
	f.Start()
	f.wantCompacted("restarted", topic("t"))
	f.sendKeyed(f.produce(f.dial(), topic("t")), 0, keyed{"K1", "new"}, nil)
	f.wantCompacted("written again", topic("t"), "K1=new")
}
