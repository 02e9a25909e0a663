package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestExpiredLeavesWhatNobodyWaitsFor: requests that waited too long are taken out, participants' answers and the store's level stay,
// else a transaction that is driven while the term begins would never end.
func TestExpiredLeavesWhatNobodyWaitsFor(t *testing.T) {
	m := newMailbox()
	now := time.Unix(1000, 0)
	answered := 0
	answer := func(*fsm.Effect, error) { answered++ }
	m.tell(&fsm.Applied{})
	put(t, m, letter{cmd: &fsm.NewTxn{}, answer: answer, since: now.Add(-time.Second)})
	m.tell(&fsm.Space{})
	put(t, m, letter{cmd: &fsm.EndTxn{}, answer: answer, since: now})
	if out := m.expired(now); len(out) != 1 || out[0].since.Equal(now) {
		t.Errorf("%d letters are taken out, want the one that waited", len(out))
	}
	if left := m.take(nil); len(left) != 3 {
		t.Errorf("%d letters are left, want 3", len(left))
	}
}

// TestMailboxRingsOnce: one token while letters wait, however many.
func TestMailboxRingsOnce(t *testing.T) {
	m := newMailbox()
	put(t, m, letter{})
	put(t, m, letter{})
	<-m.wake
	select {
	case <-m.wake:
		t.Error("two tokens for one batch of letters")
	default:
	}
	m.take(nil)
	put(t, m, letter{})
	<-m.wake
	if rest := m.close(); len(rest) != 1 {
		t.Errorf("%d letters at the close, want 1", len(rest))
	}
	if err := m.put(letter{}); !errors.Is(err, txn.ErrCoordinatorNotFound) {
		t.Errorf("after the close: %v", err)
	}
}

func put(t *testing.T, m *mailbox, l letter) {
	t.Helper()
	if err := m.put(l); err != nil {
		t.Fatal(err)
	}
}

// What waits for a coordinator that does not serve is bounded in bytes, and what the coordinator needs itself still gets in.
func TestMailboxIsBounded(t *testing.T) {
	m := newMailbox()
	big := []txn.Participant{{Topic: strings.Repeat("t", 1<<20)}}
	add := func() error {
		return m.put(letter{cmd: &fsm.AddParticipants{Participants: big}, answer: func(*fsm.Effect, error) {}})
	}
	taken := 0
	for add() == nil {
		taken++
	}
	if most := maxWaiting >> 20; taken < most/2 || taken > most {
		t.Errorf("%d MiB taken, want about %d", taken, most)
	}
	if err := add(); !errors.Is(err, txn.ErrTooManyRequests) {
		t.Errorf("over the bound: %v", err)
	}
	m.tell(&fsm.Applied{})
	if all := m.take(nil); len(all) != taken+1 {
		t.Errorf("%d letters, want %d", len(all), taken+1)
	}
	put(t, m, letter{cmd: &fsm.AddParticipants{Participants: big}})
}
