package fsm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/cleaning"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// cleaningBytes is how much of the log one cleaning of these tests reads.
const cleaningBytes = 64 << 10

// server is a machine with its store, as the driver runs it: what Ready asks for is done.
type server struct {
	opts   fsm.Options
	m      *fsm.Machine
	store  *store
	now    int64
	writes int64 // bytes appended
	cleans int
}

func newServer(t testing.TB, opts fsm.Options) *server {
	s := &server{opts: opts, store: newStore(), now: 1_000_000}
	var err error
	if s.m, _, err = s.store.load(opts, s.now, fsm.SpaceNormal); err != nil {
		t.Fatal(err)
	}
	return s
}

// commit makes the steps so far durable and reports whether the machine wants the log cleaned.
func (s *server) commit() (clean bool) {
	ready := s.m.Take()
	if ready.Writes() {
		at := s.store.append(&ready.Batch, len(ready.Batch.Changes))
		s.writes += int64(at.Bytes)
		s.m.Appended(at)
	}
	return ready.Clean
}

// cleanOnce brings the oldest entries.
func (s *server) cleanOnce() {
	n, size := 0, 0
	for n < len(s.store.values) && size < cleaningBytes {
		size += len(s.store.values[n])
		n++
	}
	s.m.Step(s.now, &fsm.Cleaned{Prefix: s.store.entries(n)})
	s.cleans++
}

// settle cleans as long as the machine asks for it, but for no more than a thousand times, and returns how often. A machine asks
// by the log as it was before the last batch, so it must be asked twice.
func (s *server) settle() int {
	n := 0
	for idle := 0; idle < 2 && n < 1000; idle++ {
		if s.commit() {
			s.cleanOnce()
			n++
			idle = -1
		}
	}
	return n
}

func (s *server) transaction(name string, end bool, participants ...txn.Participant) {
	s.m.Step(s.now, &fsm.NewTxn{TTLMillis: 1 << 40, ClientName: name, Named: name != ""})
	least := s.m.Issued()
	if len(participants) > 0 {
		s.m.Step(s.now, &fsm.AddParticipants{Least: least, Participants: participants})
	}
	if end {
		s.m.Step(s.now, &fsm.EndTxn{Least: least})
		for _, p := range participants {
			s.m.Step(s.now, &fsm.Applied{Least: least, Participant: p})
		}
	}
}

// TestLogFollowsWhatIsLive: whatever the mix of short and long transactions, outcomes that stay and outcomes that go, and
// whatever the size of the group commits, the log stays below twice what is live, and cleaning comes to an end
// by itself (promise 7).
func TestLogFollowsWhatIsLive(t *testing.T) {
	long := strings.Repeat("n", 200)
	for _, c := range []struct {
		name     string
		count    int
		batch    int
		openEach int // one of so many stays open
		client   func(i int) string
	}{
		{"nothing kept, one a commit", 0, 1, 0, func(int) string { return "" }},
		{"nothing kept, many a commit", 0, 100, 0, func(int) string { return "" }},
		{"some open, one a commit", 0, 1, 10, func(int) string { return "" }},
		{"all kept, one a commit", 1 << 30, 1, 0, func(int) string { return "" }},
		{"all kept, many a commit", 1 << 30, 100, 0, func(int) string { return "" }},
		{"few kept of many names", 5, 10, 0, func(i int) string { return fmt.Sprint("client-", i%500) }},
		{"long names", 5, 3, 3, func(i int) string { return fmt.Sprint(long, i%100) }},
		{"all kept, long names", 1 << 30, 50, 0, func(i int) string { return fmt.Sprint(long, i%100) }},
		{"some open, all kept", 1 << 30, 20, 5, func(i int) string { return "client" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, fsm.Options{TC: 1, Preserver: preserver.Options{
				Count: c.count, UnnamedCount: c.count, Retention: 1 << 40, Max: 1 << 30,
			}})
			for i := range 40_000 {
				open := c.openEach > 0 && i%c.openEach == 0
				s.transaction(c.client(i), !open, participants[:i%3]...)
				if i%c.batch == 0 && s.commit() {
					s.cleanOnce()
				}
				s.now++
			}
			s.settle()
			limit := 2*s.m.LiveCost() + cleaning.Slack
			if got := s.m.LogCost(); got > limit {
				t.Errorf("after %d cleanings the log takes %d bytes, live are %d", s.cleans, got, s.m.LiveCost())
			}
			if cleans := s.cleans; s.settle() != 0 {
				t.Errorf("cleaning never ends, %d after %d", s.cleans-cleans, cleans)
			}
			t.Logf("%d cleanings, %d MB written, log %d KB, live %d KB", s.cleans, s.writes>>20, s.m.LogCost()>>10, s.m.LiveCost()>>10)
		})
	}
}

// A prefix of the log may hold the beginning of many large transactions. They are carried over several group commits, each of which
// can be written in time, and the prefix goes with the last.
func TestCarryingIsBounded(t *testing.T) {
	const transactions, each, limit = 200, 300, 8 << 20
	names := make([]txn.Participant, each)
	for i := range names {
		names[i] = participant(fmt.Sprint(strings.Repeat("t", 200), i))
	}
	s := newServer(t, fsm.Options{TC: 1})
	for range transactions {
		s.m.Step(s.now, &fsm.NewTxn{TTLMillis: 1 << 40})
	}
	s.commit()
	first := s.m.Issued() - transactions + 1
	for i := range uint64(transactions) {
		s.m.Step(s.now, &fsm.AddParticipants{Least: first + i, Participants: names})
		s.commit()
	}
	begin, written := s.store.first, s.writes
	for rounds := 0; s.store.first == begin; rounds++ {
		if rounds == 100 {
			t.Fatal("the prefix is never dropped")
		}
		s.m.Step(s.now, &fsm.Cleaned{Prefix: s.store.entries(1)})
		s.commit()
		if n := s.writes - written; n > limit {
			t.Fatalf("one group commit of %d bytes, want %d at most", n, limit)
		}
		written = s.writes
	}
	m, _, err := s.store.load(s.opts, s.now, fsm.SpaceNormal)
	if err != nil || m.Live() != transactions {
		t.Fatalf("%d transactions after a load, %v, want %d", m.Live(), err, transactions)
	}
}
