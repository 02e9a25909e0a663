package recorder

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var rounds = flag.Int("rounds", 20, "how often each crash pair runs, one after the other on the same data")

// pair is what runs on either side of a SIGKILL.
type pair struct {
	t       *testing.T
	dataDir string
	run     string
	process *process.Server
}

// newPair starts a round of a pair on the data that the rounds before have left.
func newPair(t *testing.T, dataDir, name string, round int) *pair {
	t.Helper()
	p := &pair{t: t, dataDir: dataDir, run: fmt.Sprintf("%s-%d", name, round)}
	p.process = start(t, dataDir)
	return p
}

// crash kills the server and starts it again.
func (p *pair) crash() {
	p.t.Helper()
	kill(p.t, p.process)
	p.process = start(p.t, p.dataDir)
}

// client is a recording whose lines nobody reads, and a connection that knows the coordinator.
func (p *pair) client() (*recording, *connection) {
	r := &recording{target: target(p.process, p.run), names: map[uint64]string{}}
	p.t.Cleanup(func() {
		for _, x := range r.connections {
			x.close()
		}
	})
	return r, r.coordinator()
}

// mustEnd demands that a transaction's outcome is told: success for the action that won, InvalidTxnStatus for the other.
func (p *pair) mustEnd(x *connection, id txn.ID, won pulsarproto.TxnAction) {
	p.t.Helper()
	if a := x.ask(endTxnCommand(id, &won)); !a.ok() {
		p.t.Errorf("%v was answered %v before the crash; again: %s", id, won, x.recording.answerText(a))
	}
	lost := 1 - won
	a := x.ask(endTxnCommand(id, &lost))
	if a.frame == nil || a.frame.command.GetEndTxnResponse().GetError() != pulsarproto.ServerError_InvalidTxnStatus {
		p.t.Errorf("%v was answered %v before the crash; the contrary now: %s", id, won, x.recording.answerText(a))
	}
}

// answerText is what became of a request, in words.
func (r *recording) answerText(a *reply) string {
	switch {
	case a.closed:
		return "connection closed"
	case a.none:
		return "no answer"
	}
	return r.answer(a.frame.command, nil)
}

// contents are the messages of a topic that a new subscription gets from the earliest on.
func contents(r *recording, x *connection, topic, subscription string) map[string]int {
	consumer := r.subscribe(x, topic, subscription, pulsarproto.CommandSubscribe_Shared, 10_000)
	seen := map[string]int{}
	for _, m := range x.receive(consumer, quiet) {
		seen[m.content]++
	}
	return seen
}

func eachRound(t *testing.T, name string, play func(p *pair)) {
	t.Parallel()
	dataDir := t.TempDir()
	for round := range *rounds {
		p := newPair(t, dataDir, name, round)
		play(p)
		kill(t, p.process)
		if t.Failed() {
			t.Fatalf("round %d; the server's last lines:\n%s", round, strings.Join(p.process.Lines(), "\n"))
		}
	}
}

// N1/N2: of forty transactions some end; after the crash none of these is open or unknown, and the others are open (O-1, TC-9).
func TestCrashPairN(t *testing.T) {
	eachRound(t, "n", func(p *pair) {
		const count = 40
		ended := map[int]pulsarproto.TxnAction{0: commit, count / 4: commit, count / 2: abort, count - 1: commit}
		r, x := p.client()
		var ids [count]txn.ID
		for i := range ids {
			ids[i] = r.newTxnFor(x, 7_200_000, fmt.Sprint("T", i))
		}
		for i, action := range ended {
			if a := x.ask(endTxnCommand(ids[i], &action)); !a.ok() {
				p.t.Fatalf("end before the crash: %s", r.answerText(a))
			}
		}
		p.crash()
		r, x = p.client()
		for i, id := range ids {
			if action, ok := ended[i]; ok {
				p.mustEnd(x, id, action)
				continue
			}
			if a := x.ask(addPartitionsCommand(id, r.topic("still-open"))); !a.ok() {
				p.t.Errorf("%v was open before the crash; ADD now: %s", id, r.answerText(a))
			}
			if a := x.ask(endTxnCommand(id, abort.Enum())); !a.ok() {
				p.t.Errorf("%v was open before the crash; ABORT now: %s", id, r.answerText(a))
			}
		}
	})
}

// P1/P2: a message is committed among the first ends of a term, two of which overlap; after the crash and the deadline it is
// there, and its transaction is committed (O-1).
func TestCrashPairP12(t *testing.T) {
	eachRound(t, "p1", func(p *pair) {
		p.crash() // a term of its own
		r, x := p.client()
		topic := r.topic("p")
		producer := r.producer(x, topic, true)
		t0, t1 := r.newTxnFor(x, 7_200_000, "T0"), r.newTxnFor(x, 8_000, "T1")
		deadline := time.Now().Add(8 * time.Second)
		t2, t3 := r.newTxnFor(x, 7_200_000, "T2"), r.newTxnFor(x, 7_200_000, "T3")
		if a := x.ask(addPartitionsCommand(t1, topic)); !a.ok() {
			p.t.Fatalf("add: %s", r.answerText(a))
		}
		r.send("", x, producer, "committed-message", in(&t1, inMetadata))
		overlapping := []*pending{x.start(endTxnCommand(t0, commit.Enum())), x.start(endTxnCommand(t1, commit.Enum()))}
		for _, end := range overlapping {
			if a := end.wait(answerTimeout); !a.ok() {
				p.t.Fatalf("commit: %s", r.answerText(a))
			}
		}
		if !x.ask(endTxnCommand(t2, abort.Enum())).ok() || !x.ask(endTxnCommand(t3, commit.Enum())).ok() {
			p.t.Fatal("T2 and T3 do not end")
		}
		p.crash()
		time.Sleep(time.Until(deadline.Add(300 * time.Millisecond))) // what must not happen would happen at the deadline
		r, x = p.client()
		p.mustEnd(x, t0, commit)
		p.mustEnd(x, t1, commit)
		p.mustEnd(x, t2, abort)
		p.mustEnd(x, t3, commit)
		if seen := contents(r, x, topic, "after"); len(seen) != 1 || seen["committed-message"] != 1 {
			p.t.Errorf("a new subscription from the earliest gets %v, want the committed message", seen)
		}
	})
}

// P3/P4: a hundred and fifty commits, one after the other; after the crash and all deadlines each message that was answered as
// committed is there once, and no other (O-1).
func TestCrashPairP34(t *testing.T) {
	eachRound(t, "p3", func(p *pair) {
		const count = 150
		r, x := p.client()
		topic := r.topic("p")
		producer := r.producer(x, topic, true)
		var ids [count]txn.ID
		var sends [count]*pending
		for i := range ids {
			ids[i] = r.newTxnFor(x, 6_000, fmt.Sprint("T", i))
			add := x.start(addPartitionsCommand(ids[i], topic))
			sends[i] = x.startSend(producer, fmt.Sprint("m", i), in(&ids[i], inMetadata))
			if a := add.wait(answerTimeout); !a.ok() {
				p.t.Fatalf("add: %s", r.answerText(a))
			}
		}
		deadline := time.Now().Add(6 * time.Second)
		committed := map[string]txn.ID{}
		for i, id := range ids {
			if sends[i].wait(answerTimeout).ok() && x.ask(endTxnCommand(id, commit.Enum())).ok() {
				committed[fmt.Sprint("m", i)] = id
			}
		}
		if len(committed) == 0 {
			p.t.Fatal("nothing could be committed")
		}
		p.crash()
		time.Sleep(time.Until(deadline.Add(300 * time.Millisecond))) // what must not happen would happen at the deadlines
		r, x = p.client()
		for _, id := range committed {
			p.mustEnd(x, id, commit)
		}
		seen := contents(r, x, topic, "after")
		for content := range committed {
			if seen[content] != 1 {
				p.t.Errorf("%s was committed before the crash and is there %d times", content, seen[content])
			}
		}
		if len(seen) != len(committed) {
			p.t.Errorf("%d messages are there, %d were committed", len(seen), len(committed))
		}
	})
}
