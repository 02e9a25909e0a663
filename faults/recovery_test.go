package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-07 (a): a transaction that was open at kill -9 is aborted by its deadline without anybody asking, and what lies behind
// it becomes readable.
func TestFC07DeadlineAfterRestart(t *testing.T) { onEveryStore(t, deadlineAfterRestart) }

func deadlineAfterRestart(t *testing.T, f *fixture) {
	client := f.dial()
	producer := f.produce(client, topic("t1"))
	id := f.begin(client, 6*time.Second, "")
	f.send(producer, "in the transaction", &id)
	f.send(producer, "behind it", nil)
	f.Kill()
	f.Start()
	f.await("the deadline aborts it", func() bool { return f.describe(id).State == txn.Aborted.String() })
	ended := f.describe(id)
	if late := ended.EndedAt.Sub(ended.DeadlineAt); late < 0 || late > f.Server.Started+etcdLease+10*time.Second {
		t.Errorf("ended %v after its deadline", late)
	}
	f.receive(f.subscribe(f.dial(), topic("t1"), "s"), "behind it")
}

// FC-07 (b): a commit that was decided when the process died completes by itself.
func TestFC07DecidedBeforeCrash(t *testing.T) {
	f := newStopped(t, binaries.Failpoint(t))
	f.StartToDie(failpoint.Variable + "=before:TOPIC_COMMIT:1")
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("t1")), "m1", &id)
	f.send(f.produce(client, topic("t2")), "m2", &id)
	f.driven(client, id)
	if err := client.End(f.ctx, id, txn.Commit, ""); err == nil {
		t.Fatal("success was answered before the participants were done")
	}
	f.AwaitDeath(waitTime)
	f.Start()
	f.await("the commit completes", func() bool { return f.describe(id).State == txn.Committed.String() })
	f.holds(topic("t1"), "m1")
	f.holds(topic("t2"), "m2")
}

// FC-07 (c): deadlines that fall into the load are met for every transaction.
func TestFC07DeadlinesWhileLoading(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	var ids []txn.ID
	for range 500 {
		ids = append(ids, f.begin(client, 300*time.Millisecond, ""))
	}
	f.Kill()
	f.Start()
	f.await("every transaction has ended", func() bool { return len(f.live()) == 0 })
	client = f.dial()
	for _, id := range ids {
		f.end(client, id, txn.Commit, pulsarproto.ServerError_InvalidTxnStatus)
	}
}

// FC-10: ids grow over stops, kills in the middle of NEW_TXN and cleaned records.
func TestFC10IDsGrow(t *testing.T) { onEveryStore(t, idsGrow, "transactionMetaPersistUnnamedCount=0") }

func idsGrow(t *testing.T, f *fixture) {
	var last uint64
	seen := 0
	take := func(id txn.ID) {
		t.Helper()
		if id.Least <= last {
			t.Fatalf("id %s after %d", id, last)
		}
		last = id.Least
		seen++
	}
	for round := range 6 {
		client := f.dial()
		for range 30 {
			id := f.begin(client, longTTL, "")
			take(id)
			f.end(client, id, txn.Commit, success)
		}
		answers := make(chan uint64, 200) // 0: no id
		for range cap(answers) {
			client.Start(wireclient.NewTxn(0, 1000, ""), func(answer *pulsarproto.BaseCommand, err error) {
				if err != nil || wireclient.ErrorOf(answer) != nil {
					answers <- 0
					return
				}
				answers <- answer.GetNewTxnResponse().GetTxnidLeastBits()
			})
		}
		if round%2 == 0 {
			f.Kill()
		} else {
			f.Stop()
		}
		for range cap(answers) {
			if least := <-answers; least != 0 {
				take(txn.ID{Least: least})
			}
		}
		f.Start()
	}
	t.Logf("%d ids", seen)
}

// FC-12: a request in flight gets an answer or a closed connection when the server goes, and its transaction goes on
// afterwards from another connection.
func TestFC12RestartUnderTransactions(t *testing.T) { onEveryStore(t, restartUnderTransactions) }

func restartUnderTransactions(t *testing.T, f *fixture) {
	for name, end := range map[string]func(*fixture){
		"stop": func(f *fixture) { f.Stop() },
		"kill": func(f *fixture) { f.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			client := f.dial()
			first, second := f.begin(client, longTTL, ""), f.begin(client, longTTL, "")
			f.send(f.produce(client, topic(name+"1")), "m1", &first)
			f.send(f.produce(client, topic(name+"1")), "m2", &second)
			answered := make(chan error, 1)
			client.Start(wireclient.EndTxn(first, txn.Commit, ""), func(answer *pulsarproto.BaseCommand, err error) {
				if err == nil {
					err = wireclient.ErrorOf(answer)
				}
				answered <- err
			})
			end(f)
			select {
			case err := <-answered:
				t.Logf("the request in flight: %v", err)
			case <-time.After(waitTime):
				t.Fatal("silence on an open connection")
			}
			select {
			case <-client.Done():
			case <-time.After(waitTime):
				t.Fatal("the connection stays open")
			}
			f.Start()
			client = f.dial()
			f.end(client, first, txn.Commit, success)
			_, err := client.Call(f.ctx, wireclient.AddPartitions(second, topic(name+"2")))
			f.want("ADD after the restart", err, success)
			f.send(f.produce(client, topic(name+"2")), "m3", &second)
			f.end(client, second, txn.Commit, success)
			f.holds(topic(name+"1"), "m1", "m2")
			f.holds(topic(name+"2"), "m3")
		})
	}
}

// FC-08: what a dead client acknowledged in an open transaction stays with that transaction until its deadline, and comes
// back then.
func TestFC08DeadClientWithPendingAcks(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	f.send(f.produce(client, topic("t1")), "m1", nil)
	consumer := f.subscribe(client, topic("t1"), "s")
	m1 := f.receive(consumer, "m1")
	x := f.begin(client, 8*time.Second, "")
	_, err := client.Call(f.ctx, wireclient.AddSubscription(x, topic("t1"), "s"))
	f.want("ADD", err, success)
	f.want("ACK in X", consumer.Ack(f.ctx, m1.ID, &x), success)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}

	client = f.dial()
	consumer = f.subscribe(client, topic("t1"), "s")
	y := f.begin(client, longTTL, "")
	f.want("ACK in Y", consumer.Ack(f.ctx, m1.ID, &y), pulsarproto.ServerError_TransactionConflict)
	again := f.receive(consumer, "m1") // not before X has ended
	if state := f.describe(x).State; state != txn.Aborted.String() && state != txn.Aborting.String() {
		t.Errorf("delivered while X was %s", state)
	}
	z := f.begin(client, longTTL, "")
	f.want("ACK in Z", consumer.Ack(f.ctx, again.ID, &z), success)
	f.end(client, z, txn.Commit, success)
	f.end(client, y, txn.Abort, success)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}

	client = f.dial()
	f.send(f.produce(client, topic("t1")), "m2", nil)
	f.receive(f.subscribe(client, topic("t1"), "s"), "m2")
}

// FC-19: topics deliver plain messages at once whether or not they ever saw a transaction, and never too many.
func TestFC19PlainMessages(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("fresh"))
	for i := range 26 {
		f.send(producer, fmt.Sprint("first ", i), nil)
	}
	consumer := f.subscribe(client, topic("fresh"), "s")
	for i := range 26 {
		f.want("ACK", consumer.Ack(f.ctx, f.receive(consumer, fmt.Sprint("first ", i)).ID, nil), success)
	}

	f.Kill()
	f.Start()
	client = f.dial()
	consumer = f.subscribe(client, topic("fresh"), "s")
	producer = f.produce(client, topic("fresh"))
	for i := range 26 {
		f.send(producer, fmt.Sprint("second ", i), nil)
	}
	for i := range 26 {
		f.receive(consumer, fmt.Sprint("second ", i))
	}

	producer = f.produce(client, topic("held"))
	id := f.begin(client, longTTL, "")
	for i := range 10 {
		if i == 3 {
			f.send(producer, "open", &id)
			continue
		}
		f.send(producer, fmt.Sprint(i), nil)
	}
	f.Kill()
	f.Start()
	client = f.dial()
	consumer = f.subscribe(client, topic("held"), "s")
	for i := range 3 {
		f.receive(consumer, fmt.Sprint(i))
	}
	// Nothing else comes before the transaction has ended: the last id that can be read says so without a wait.
	last := f.lastMessageID(consumer)
	f.end(client, id, txn.Abort, success)
	for i := 4; i < 10; i++ {
		f.receive(consumer, fmt.Sprint(i))
	}
	if now := f.lastMessageID(consumer); now == last {
		t.Errorf("the last message was %s before the transaction ended and after", last)
	}
}
