package topic

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestCompactedAgainstFold: however messages come, plain, in batches and transactions, and compactions, crashes, trims and
// restarts between them, a reader of the compacted topic ends with the fold of the log by key.
func TestCompactedAgainstFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, trims)
		defer w.close()
		m := &foldRun{rt: rt, w: w}
		m.p = w.produce("a")
		w.compact("a") // from now on nothing is trimmed that is not compacted
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			m.step()
		}
		for len(m.open) > 0 {
			m.end()
		}
		m.compare()
		w.compact("a")
		m.compare()
	})
}

type foldRun struct {
	rt       *rapid.T
	w        *world
	p        *testProducer
	sequence uint64
	log      []folded
	open     []txn.ID
}

// folded is one SEND.
type folded struct {
	all     []keyValue
	in      txn.ID
	aborted bool
}

func (m *foldRun) draw() []keyValue {
	var all []keyValue
	for range rapid.IntRange(1, 3).Draw(m.rt, "size") {
		kv := keyValue{key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.rt, "key")}
		if rapid.IntRange(0, 3).Draw(m.rt, "tombstone") > 0 {
			kv.value = fmt.Sprint("v", m.sequence)
		}
		all = append(all, kv)
	}
	return all
}

func (m *foldRun) send(in *txn.ID) {
	all := m.draw()
	msg := valued(m.w.t, m.sequence, all...)
	entry := folded{all: all}
	if in != nil {
		msg, entry.in = inTxn(*in, msg), *in
	}
	m.sequence++
	m.producer().send(msg)
	m.log = append(m.log, entry)
}

// producer returns one that is attached.
func (m *foldRun) producer() *testProducer {
	select {
	case <-m.p.disconnected:
		m.p = m.w.produce("a")
	default:
	}
	return m.p
}

func (m *foldRun) end() {
	i := rapid.IntRange(0, len(m.open)-1).Draw(m.rt, "which")
	id, action := m.open[i], txn.Action(rapid.IntRange(0, 1).Draw(m.rt, "action"))
	m.open = append(m.open[:i], m.open[i+1:]...)
	m.w.end(id, action, "a", "")
	for n := range m.log {
		if m.log[n].in == id {
			m.log[n].aborted = action == txn.Abort
		}
	}
}

func (m *foldRun) step() {
	switch rapid.IntRange(0, 11).Draw(m.rt, "step") {
	case 0, 1, 2, 3:
		m.send(nil)
	case 4:
		m.open = append(m.open, m.w.coord.begin())
	case 5, 6:
		if len(m.open) > 0 {
			m.send(&m.open[rapid.IntRange(0, len(m.open)-1).Draw(m.rt, "in")])
		}
	case 7:
		if len(m.open) > 0 {
			m.end()
		}
	case 8:
		m.crash(rapid.IntRange(1, 6).Draw(m.rt, "at"), rapid.Bool().Draw(m.rt, "applied"))
	case 9:
		m.w.compact("a")
	case 10:
		m.producer()
		m.w.trim("a")
	case 11:
		m.w.restart()
		m.p = m.w.produce("a")
	}
}

// crash compacts, and the n-th write fails.
func (m *foldRun) crash(n int, applied bool) {
	m.w.breakWrite(n, applied)
	m.w.compact("a")
	m.w.kv.set(nil)
}

func (m *foldRun) compare() {
	want := map[string]string{}
	for _, e := range m.log {
		if !e.aborted {
			apply(want, e.all...)
		}
	}
	c := m.w.subscribe("a", "reader", nonDurable, earliest, readCompacted)
	defer c.Close()
	if got, _ := c.table(); !maps.Equal(got, want) {
		m.rt.Fatalf("read %v, want %v", got, want)
	}
}
