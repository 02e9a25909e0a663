package coordinator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// decisions are of the transactions 1 to n, each committed on the topics, or on one. Only a machine makes them.
func decisions(t *testing.T, n uint64, topics ...string) []fsm.Decision {
	t.Helper()
	participants := []txn.Participant{{Topic: "topic"}}
	if len(topics) > 0 {
		participants = nil
	}
	for _, topic := range topics {
		participants = append(participants, txn.Participant{Topic: topic})
	}
	m := fsm.New(fsm.Options{})
	if _, _, err := m.Recover(0, 0); err != nil {
		t.Fatal(err)
	}
	for least := uint64(1); least <= n; least++ {
		m.Step(0, &fsm.NewTxn{TTLMillis: 1000})
		m.Step(0, &fsm.AddParticipants{Least: least, Participants: participants})
		m.Step(0, &fsm.EndTxn{Least: least, Action: txn.Commit})
	}
	effects, err := m.Take().Effects(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var all []fsm.Decision
	for _, e := range effects {
		if e.Kind == fsm.Drive {
			all = append(all, e.Decision)
		}
	}
	return all
}

// A transaction with many participants holds up no other: they take turns, and within one the order stays (TC-23).
func TestTransactionsTakeTurns(t *testing.T) {
	q := turns{perTopic: 100}
	made := decisions(t, 4)
	push := func(least uint64, n int) {
		for i := range n {
			q.push(&drive{decision: made[least-1], attempts: i})
		}
	}
	push(1, 4)
	push(2, 1)
	push(3, 2)
	want := []drive{{made[0], 0}, {made[1], 0}, {made[2], 0}, {made[0], 1}, {made[2], 1}, {made[0], 2}, {made[0], 3}}
	for i := range want {
		if got := q.pop(); got == nil || *got != want[i] {
			t.Fatalf("turn %d: %+v, want %+v", i, got, want[i])
		}
	}
	if d := q.pop(); d != nil || len(q.lines) != 0 {
		t.Errorf("left: %+v, %d lines", d, len(q.lines))
	}
	push(4, 1)
	if d := q.pop(); d == nil || d.decision != made[3] {
		t.Errorf("after it was empty: %+v", d)
	}
}

// Drives of a topic that has no room are held back in order, none that comes later overtakes them, and as soon as there is room they
// take turns with the others (TC-23).
func TestTopicsHaveRoom(t *testing.T) {
	q := turns{perTopic: 2}
	made := decisions(t, 6)
	push := func(least uint64) { q.push(&drive{decision: made[least-1]}) }
	pop := func(want uint64) {
		t.Helper()
		var got uint64
		if d := q.pop(); d != nil {
			got = d.decision.ID().Least
		}
		if got != want {
			t.Fatalf("the next is of %d, want %d", got, want)
		}
	}
	for least := uint64(1); least <= 4; least++ {
		push(least)
	}
	pop(1)
	pop(2)
	pop(0)
	q.over("topic")
	push(5)
	if q.admits("topic") {
		t.Error("whoever comes now begins before those that are held back")
	}
	pop(3)
	pop(0)
	q.over("topic")
	q.over("topic")
	pop(4)
	push(6)
	pop(5)
	pop(0)
	q.over("topic")
	q.over("topic")
	pop(6)
	q.over("topic")
	if len(q.lines) != 0 || len(q.held) != 0 || len(q.busy) != 0 || len(q.next) != 0 {
		t.Errorf("left: %+v", q)
	}
}

// Whatever begins and ends in which order: no topic has more than its part, nothing waits for which there is room, and each drive comes
// once.
func TestTurns(t *testing.T) {
	made := decisions(t, 20, "a", "b", "c")
	rapid.Check(t, func(rt *rapid.T) {
		q := turns{perTopic: rapid.IntRange(1, 3).Draw(rt, "per topic")}
		busy, waiting := map[string]int{}, map[string]int{}
		begun := map[fsm.Decision]bool{}
		pushed := 0
		push := func(rt *rapid.T) {
			if pushed == len(made) {
				rt.Skip("all are pushed")
			}
			for range min(len(made)-pushed, rapid.IntRange(1, 12).Draw(rt, "drives")) {
				d := &drive{decision: made[pushed]}
				pushed++
				waiting[d.topic()]++
				q.push(d)
			}
		}
		pop := func(rt *rapid.T) {
			d := q.pop()
			if d == nil {
				for topic, n := range waiting {
					if n > 0 && busy[topic] < q.perTopic {
						rt.Fatalf("%d drives of %s wait although there is room", n, topic)
					}
				}
				return
			}
			topic := d.topic()
			waiting[topic]--
			busy[topic]++
			if begun[d.decision] || busy[topic] > q.perTopic {
				rt.Fatalf("%+v begins, %d of its topic are not over", d, busy[topic])
			}
			begun[d.decision] = true
		}
		over := func(rt *rapid.T) {
			topic := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "topic")
			if busy[topic] == 0 {
				rt.Skip("nothing of it has begun")
			}
			busy[topic]--
			q.over(topic)
		}
		rt.Repeat(map[string]func(*rapid.T){"push": push, "pop": pop, "over": over})
	})
}
