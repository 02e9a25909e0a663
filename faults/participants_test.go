package faults

import (
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A transaction that wrote to a topic and acknowledged on two of its subscriptions ends on all three at once.
func TestEndOnTopicAndItsSubscriptions(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		t.Run(action.String(), func(t *testing.T) {
			f := newFixture(t)
			client := f.dial()
			producer := f.produce(client, topic("t1"))
			f.send(producer, "before", nil)
			id := f.begin(client, longTTL, "")
			f.send(producer, "in it", &id)
			for _, subscription := range []string{"a", "b"} {
				consumer := f.subscribe(client, topic("t1"), subscription)
				f.want("ACK", consumer.Ack(f.ctx, f.receive(consumer, "before").ID, &id), success)
			}
			f.end(client, id, action, success)
			f.send(producer, "behind", nil)
			want := []string{"in it", "behind"}
			if action == txn.Abort {
				want = []string{"before", "behind"}
			}
			f.Kill()
			f.Start()
			client = f.dial()
			for _, subscription := range []string{"a", "b"} {
				consumer := f.subscribe(client, topic("t1"), subscription)
				for _, content := range want {
					f.receive(consumer, content)
				}
			}
		})
	}
}
