package coordinator

import (
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
)

// TestExpiredLeavesWhatNobodyWaitsFor: requests that waited too long are taken out, participants' answers and the store's level stay,
// else a transaction that is driven while the term begins would never end.
func TestExpiredLeavesWhatNobodyWaitsFor(t *testing.T) {
	m := newMailbox()
	now := time.Unix(1000, 0)
	answered := 0
	answer := func(*fsm.Effect, error) { answered++ }
	for _, l := range []letter{
		{cmd: &fsm.Applied{}},
		{cmd: &fsm.NewTxn{}, answer: answer, since: now.Add(-time.Second)},
		{cmd: &fsm.Space{}},
		{cmd: &fsm.EndTxn{}, answer: answer, since: now},
	} {
		m.put(l)
	}
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
	m.put(letter{})
	m.put(letter{})
	<-m.wake
	select {
	case <-m.wake:
		t.Error("two tokens for one batch of letters")
	default:
	}
	m.take(nil)
	m.put(letter{})
	<-m.wake
	if rest := m.close(); len(rest) != 1 || m.put(letter{}) {
		t.Errorf("%d letters at the close, want 1; a closed mailbox takes none", len(rest))
	}
}
