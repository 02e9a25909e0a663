package fsm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// limited returns a machine with one open transaction.
func limited(t *testing.T, opts fsm.Options) (*fsm.Machine, uint64) {
	t.Helper()
	opts.Preserver = preserver.Options{Count: 10, UnnamedCount: 10, Retention: 1 << 40, Max: 100}
	m := fsm.New(opts)
	if _, _, err := m.Recover(1000, 0); err != nil {
		t.Fatal(err)
	}
	m.Step(1000, &fsm.NewTxn{To: "new", TTLMillis: 1 << 30})
	return m, effects(m.Take())[0].ID.Least
}

// refusals returns the errors that a Ready answers with.
func refusals(r *fsm.Ready) (all []error) {
	for _, e := range effects(r) {
		if e.Err != nil {
			all = append(all, e.Err)
		}
	}
	return all
}

// Who asks for the end of a stuck transaction again and again, from connections that are gone, costs bounded memory.
func TestWaitersAreBounded(t *testing.T) {
	m, least := limited(t, fsm.Options{})
	m.Step(1000, &fsm.AddParticipants{To: "add", Least: least, Participants: []txn.Participant{{Topic: "stuck"}}})
	var refused []error
	for i := range 5000 {
		m.Step(1000, &fsm.EndTxn{To: i, Least: least, Action: txn.Commit})
		refused = append(refused, refusals(m.Take())...)
	}
	if len(refused) != 4000 || !errors.Is(refused[0], txn.ErrNotReady) {
		t.Fatalf("%d refused, the first with %v; want 4000 with ErrNotReady", len(refused), refused[0])
	}
	m.Step(1000, &fsm.Applied{Least: least, Participant: txn.Participant{Topic: "stuck"}})
	answered := 0
	for _, e := range effects(m.Take()) {
		if e.Kind == fsm.Reply && e.Err == nil {
			answered++
		}
	}
	if answered != 1000 {
		t.Errorf("%d answered at the end, want the 1000 that waited", answered)
	}
}

// The participants of one transaction are bounded so that its snapshot fits a store request, resolved ones written twice.
func TestSnapshotFitsARequest(t *testing.T) {
	const limit = 100_000
	m, least := limited(t, fsm.Options{MaxSnapshotBytes: limit})
	all := []txn.Participant{}
	for i := 0; ; i++ {
		p := txn.Participant{Topic: fmt.Sprint("persistent://public/default/", i), Subscription: "s", Kind: txn.AckedSubscription}
		m.Step(1000, &fsm.AddParticipants{To: i, Least: least, Participants: []txn.Participant{p}})
		if refused := refusals(m.Take()); len(refused) > 0 {
			if !errors.Is(refused[0], txn.ErrNotAllowed) {
				t.Fatal(refused[0])
			}
			break
		}
		all = append(all, p)
	}
	if len(all) < 100 {
		t.Fatalf("only %d participants fit", len(all))
	}
	var encoder txnlog.Encoder
	encoder.Reset()
	encoder.Add(&txn.Record{Op: txn.OpSnapshot, Least: least, Status: txn.Committing, Participants: all, Done: all, Time: 1000})
	if size := len(encoder.Value()); size > limit || size < limit/2 {
		t.Errorf("the snapshot takes %d bytes, the limit is %d", size, limit)
	}
}

// What one Tick does is bounded by participants, too: each of them is asked to abort. The rest is due at once.
func TestDeadlinesOfManyParticipants(t *testing.T) {
	const transactions, participants = 20, 500
	m, _ := limited(t, fsm.Options{})
	for range transactions {
		m.Step(1000, &fsm.NewTxn{To: "new", TTLMillis: 1000})
		least := effects(m.Take())[0].ID.Least
		add := &fsm.AddParticipants{To: "add", Least: least}
		for i := range participants {
			add.Participants = append(add.Participants, txn.Participant{Topic: fmt.Sprint(i)})
		}
		m.Step(1000, add)
		m.Take()
	}
	driven := 0
	for ticks := 0; m.NextDeadline() <= 2000; ticks++ {
		m.Step(2000, &fsm.Tick{})
		now := 0
		for _, e := range effects(m.Take()) {
			if e.Kind == fsm.Drive {
				now++
			}
		}
		if now == 0 || now > 1024+participants {
			t.Fatalf("tick %d drives %d participants", ticks, now)
		}
		driven += now
	}
	if driven != transactions*participants {
		t.Errorf("%d participants are driven, want %d", driven, transactions*participants)
	}
}

// A load that finds many decided transactions drives them in portions, as a Tick does, and serves commands meanwhile (TC-23): one that is
// not driven yet is joined (TC-14), and may be ended by an operator's word (O-4).
func TestRecoveryDrivesInPortions(t *testing.T) {
	const transactions, participants = 20, 500
	opts := fsm.Options{Preserver: preserver.Options{Count: 10, UnnamedCount: 100, Retention: 1 << 40, Max: 100}}
	s := newStore()
	m, _, err := s.load(opts, 1000, fsm.SpaceNormal)
	if err != nil {
		t.Fatal(err)
	}
	open := func(n int) (least uint64) {
		m.Step(1000, &fsm.NewTxn{To: "new", TTLMillis: 1000})
		least = m.Issued()
		add := &fsm.AddParticipants{To: "add", Least: least}
		for i := range n {
			add.Participants = append(add.Participants, txn.Participant{Topic: fmt.Sprint(i)})
		}
		m.Step(1000, add)
		m.Step(1000, &fsm.EndTxn{To: "end", Least: least, Action: txn.Commit})
		ready := m.Take()
		m.Appended(s.append(&ready.Batch, len(ready.Batch.Changes)))
		return least
	}
	for range transactions {
		open(participants)
	}
	resolved, joined := open(1), open(1)

	m, ready, err := s.load(opts, 2000, fsm.SpaceNormal)
	if err != nil {
		t.Fatal(err)
	}
	m.Step(2000, &fsm.EndTxn{To: "again", Least: joined, Action: txn.Commit})
	m.Step(2000, &fsm.Resolve{To: "resolve", Least: resolved, Participant: txn.Participant{Topic: "0"}})
	driven, last := 0, txn.ID{}
	for {
		portion := 0
		for _, e := range effects(ready) {
			if e.Kind == fsm.Drive {
				portion++
				last = e.Decision.ID()
			}
		}
		if portion > 1024+participants {
			t.Fatalf("%d participants are driven at once", portion)
		}
		driven += portion
		if m.NextDeadline() > 2000 {
			break
		}
		m.Step(2000, &fsm.Tick{})
		ready = m.Take()
	}
	if driven != transactions*participants+1 || last != (txn.ID{Least: joined}) {
		t.Fatalf("%d participants are driven, the last of %v; want %d and %d", driven, last, transactions*participants+1, joined)
	}
	m.Step(2000, &fsm.Applied{Least: joined, Participant: txn.Participant{Topic: "0"}})
	all := effects(m.Take())
	if answer := all[len(all)-1]; answer.To != "again" || answer.Err != nil {
		t.Errorf("END of the last is answered %+v", answer)
	}
}
