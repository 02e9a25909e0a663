package topic

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// unretained returns the position before which entries may be deleted if nobody needs them: they are old enough for
// Options.Retention, and beyond the time or the size that the policies retain.
//
// Source: ManagedLedgerImpl.internalTrimLedgers: what exceeds either of them goes.
func (t *Topic) unretained(now time.Time, policies *Policies) ledger.Position {
	old := t.oldEnough(now)
	if policies.RetentionTime == 0 || policies.RetentionBytes == 0 {
		return old
	}
	retained := t.first
	if policies.RetentionTime > 0 {
		t.findRetained(now, policies.RetentionTime)
		retained = later(retained, t.trim.retained)
	}
	if most := uint64(max(0, policies.RetentionBytes)); most > 0 && t.sizes.through > most {
		retained = later(retained, t.positionAt(t.sizes.through-most))
	}
	if retained.Before(old) {
		return retained
	}
	return old
}

func later(p, q ledger.Position) ledger.Position {
	if p.Before(q) {
		return q
	}
	return p
}

// oldEnough returns the position before which everything is older than Options.Retention.
func (t *Topic) oldEnough(now time.Time) ledger.Position {
	marks, mark := t.trim.marks, endMark{now, t.end()}
	switch n := len(marks); {
	case n > 0 && marks[n-1].end == mark.end:
	case n > 1 && now.Sub(marks[n-2].at) < t.options.Retention/marksKept:
		marks[n-1] = mark
	default:
		marks = append(marks, mark)
	}
	old := t.first
	for len(marks) > 0 && now.Sub(marks[0].at) >= t.options.Retention {
		old = marks[0].end
		if len(marks) == 1 {
			break
		}
		marks = marks[1:]
	}
	t.trim.marks = marks
	return old
}

// findRetained looks from time to time for the first entry that was stored within d.
func (t *Topic) findRetained(now time.Time, d time.Duration) {
	if t.trim.looking || !t.trim.looked.IsZero() && now.Sub(t.trim.looked) < d/retentionLooks || !t.first.Before(t.behindLast()) {
		return
	}
	t.trim.looking, t.trim.looked = true, now
	t.findStored(now.Add(-d), func(p ledger.Position, err error) {
		t.trim.looking = false
		if err == nil {
			t.trim.retained = p
		}
	})
}
