package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-01: a repeated commit tells the truth, wherever it comes from and whatever happened in between; the data are there once.
func TestFC01RepeatedCommit(t *testing.T) {
	f := newFixture(t, "TransactionMetaPersistCount=10")
	const name = "c1"
	client := f.dial()
	producer := f.produce(client, topic("t1"))
	id := f.begin(client, longTTL, name)
	_, err := client.Call(f.ctx, wireclient.AddPartitions(id, topic("t1")))
	f.want("ADD", err, success)
	f.send(producer, "m1", &id)
	commit := func(client *wiretopic.Client, where string) {
		t.Helper()
		f.want("commit "+where, client.End(f.ctx, id, txn.Commit, name), success)
		f.want("abort "+where, client.End(f.ctx, id, txn.Abort, name), pulsarproto.ServerError_InvalidTxnStatus)
	}
	commit(client, "at first")
	watching := f.subscribe(client, topic("t1"), "watching")
	last := f.lastMessageID(watching)
	commit(client, "again")
	commit(f.dial(), "from another connection")
	if now := f.lastMessageID(watching); now != last {
		t.Errorf("a repeat moved the last message from %s to %s", last, now)
	}
	f.Stop()
	f.Start()
	commit(f.dial(), "after a restart")
	f.Kill()
	f.Start()
	commit(f.dial(), "after kill -9")
	f.holds(topic("t1"), "m1")
}

// FC-01, variant: the connection goes between END_TXN and its answer.
func TestFC01LostAnswer(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("t1")), "m1", &id)
	client.Start(wireclient.EndTxn(id, txn.Commit, ""), func(*pulsarproto.BaseCommand, error) {})
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	f.end(f.dial(), id, txn.Commit, success)
	f.end(f.dial(), id, txn.Commit, success)
	f.holds(topic("t1"), "m1")
}

// FC-01: without retention a repeat is not found, and nothing else.
func TestFC01WithoutRetention(t *testing.T) {
	f := newFixture(t, "transactionMetaPersistCount=0", "transactionMetaPersistUnnamedCount=0")
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("t1")), "m1", &id)
	f.end(client, id, txn.Commit, success)
	f.end(client, id, txn.Commit, pulsarproto.ServerError_TransactionNotFound)
	f.holds(topic("t1"), "m1")
}

// FC-02: a repeat joins the end that runs, the contrary is refused at once, and a participant that ended is not ended again.
func TestFC02RepeatWhileRunning(t *testing.T) {
	f := newStopped(t, binaries.Failpoint(t))
	release := f.startUntilReleased("hold:TOPIC_COMMIT:1")
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("t1")), "m1", &id)
	f.send(f.produce(client, topic("t2")), "m2", &id)
	f.driven(client, id)
	first := make(chan error, 1)
	go func() { first <- client.End(f.ctx, id, txn.Commit, "") }()
	f.await("one participant is held up", func() bool { return f.Server.Said("TOPIC_COMMIT 1 holds") })
	second, other := make(chan error, 1), f.dial()
	go func() { second <- other.End(f.ctx, id, txn.Commit, "") }()
	f.end(f.dial(), id, txn.Abort, pulsarproto.ServerError_InvalidTxnStatus)
	release()
	f.want("first commit", <-first, success)
	f.want("second commit", <-second, success)

	f.holds(topic("t1"), "m1")
	f.holds(topic("t2"), "m2")
}

// FC-02: a participant that has ended is not ended again, neither by the same action, which is answered alike, nor by the contrary one,
// which is refused (O-6): no message more, none less, no acknowledgement more, also behind a restart.
func TestFC02ParticipantsEndOnce(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		t.Run(action.String(), func(t *testing.T) {
			f := newFixture(t)
			client := f.dial()
			producer := f.produce(client, topic("t"))
			f.send(producer, "before", nil)
			consumer := f.subscribe(client, topic("t"), "s")
			before := f.receive(consumer, "before").ID
			id := f.begin(client, longTTL, "")
			f.send(producer, "in it", &id)
			f.want("ACK", consumer.Ack(f.ctx, before, &id), success)
			f.end(client, id, action, success)
			contents := []string{"before", "in it"}
			if action == txn.Abort {
				contents = contents[:1]
				f.want("ACK of what was given back", consumer.Ack(f.ctx, f.receive(consumer, "before").ID, nil), success)
			} else {
				f.receive(consumer, "in it")
			}
			last := f.lastMessageID(consumer)
			for restart := range 2 {
				if restart == 1 {
					f.Kill()
					f.Start()
					client = f.dial()
					consumer = f.subscribe(client, topic("t"), "s")
				}
				for range 2 {
					f.want("the end of the topic again", endOnPartition(f, client, id, action, topic("t")), success)
					f.want("the end of the subscription again", endOnSubscription(f, client, id, action, topic("t"), "s"), success)
				}
				f.want("the contrary end of the topic", endOnPartition(f, client, id, 1-action, topic("t")), pulsarproto.ServerError_InvalidTxnStatus)
				f.want("the contrary end of the subscription", endOnSubscription(f, client, id, 1-action, topic("t"), "s"), pulsarproto.ServerError_InvalidTxnStatus)
				if now := f.lastMessageID(consumer); now != last {
					t.Errorf("the last message moved from %s to %s", last, now)
				}
			}
			f.holds(topic("t"), contents...)
			if action == txn.Commit { // received before the restart, and not acknowledged
				f.receive(consumer, "in it")
			}
			f.receive(consumer, "mark 1") // of holds; "before" does not come again
		})
	}
}

// driven makes the coordinator decide a transaction first and tell its participants then: a commit is made durable on all of
// them by one write only if each is loaded, and one topic here does not even exist.
func (f *fixture) driven(client *wiretopic.Client, id txn.ID) {
	f.Helper()
	if _, err := client.Call(f.ctx, wireclient.AddPartitions(id, topic("nowhere"))); err != nil {
		f.Fatal(err)
	}
}

// startUntilReleased starts the server with a failpoint that waits until release is called.
func (f *fixture) startUntilReleased(rule string) (release func()) {
	f.Helper()
	file := filepath.Join(f.TempDir(), "release")
	f.Start(fmt.Sprintf("%s=%s:%s", failpoint.Variable, rule, file))
	return func() {
		f.Helper()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			f.Fatal(err)
		}
	}
}

func endOnPartition(f *fixture, client *wiretopic.Client, id txn.ID, action txn.Action, topic string) error {
	wire, mark := pulsarproto.TxnAction(action), uint64(0)
	_, err := client.Call(f.ctx, &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(),
		EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Topic: &topic, TxnAction: &wire, TxnidLeastBitsOfLowWatermark: &mark,
		},
	})
	return err
}

func endOnSubscription(f *fixture, client *wiretopic.Client, id txn.ID, action txn.Action, topic, subscription string) error {
	wire, mark := pulsarproto.TxnAction(action), uint64(0)
	_, err := client.Call(f.ctx, &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION.Enum(),
		EndTxnOnSubscription: &pulsarproto.CommandEndTxnOnSubscription{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: &wire, TxnidLeastBitsOfLowWatermark: &mark,
			Subscription: &pulsarproto.Subscription{Topic: &topic, Subscription: &subscription},
		},
	})
	return err
}

// FC-04: an abort behind the deadline finds what it wanted, a commit is told at once that it is too late, and the connection
// goes on.
func TestFC04EndAfterDeadline(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t1"))
	for _, c := range []struct {
		action txn.Action
		code   pulsarproto.ServerError
	}{{txn.Abort, success}, {txn.Commit, pulsarproto.ServerError_InvalidTxnStatus}} {
		id := f.begin(client, 3*time.Second, "")
		f.send(producer, "late", &id)
		f.await("the deadline aborts it", func() bool { return f.describe(id).State == txn.Aborted.String() })
		f.end(client, id, c.action, c.code)
	}
	id := f.begin(client, longTTL, "")
	f.send(producer, "next", &id)
	f.end(client, id, txn.Commit, success)
	f.holds(topic("t1"), "next")
}

// A decision whose answer was lost on the way to the store, and which arrives there when the same process leads in a later
// term, is refused: what the later term decided stays.
func TestDelayedAppendIsRefused(t *testing.T) {
	f := newStopped(t, binaries.Failpoint(t))
	release := f.startUntilReleased("late:END:1")
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("t1")), "m1", &id)
	err := client.End(f.ctx, id, txn.Commit, "")
	if code := codeOf(err); code != pulsarproto.ServerError_TransactionCoordinatorNotFound && code != noAnswer {
		t.Fatalf("an unknown result was answered with %v", err)
	}
	f.end(f.dial(), id, txn.Abort, success)
	release()
	f.await("the late decision arrives", func() bool { return f.Server.Said("END 1 applied") })
	if !f.Server.Said("END 1 applied: false") {
		t.Error("the late decision was applied")
	}
	f.end(f.dial(), id, txn.Commit, pulsarproto.ServerError_InvalidTxnStatus)
	f.holds(topic("t1"))
}

// A message whose receipt was lost on the way to the store, and which arrives there when the topic has been loaded again, is
// refused: positions that were given since stay what they are.
func TestDelayedSendIsRefused(t *testing.T) {
	f := newStopped(t, binaries.Failpoint(t))
	release := f.startUntilReleased("late:PLAIN:1")
	_, err := f.produce(f.dial(), topic("t1")).Send(f.ctx, "first", nil)
	f.want("SEND with an unknown result", err, noAnswer)
	f.send(f.produce(f.dial(), topic("t1")), "second", nil)
	release()
	f.await("the late message arrives", func() bool { return f.Server.Said("PLAIN 1 applied") })
	if !f.Server.Said("PLAIN 1 applied: false") {
		t.Error("the late message was stored")
	}
	f.send(f.produce(f.dial(), topic("t1")), "third", nil)
	f.holds(topic("t1"), "second", "third")
}
