package coordinator

import (
	"testing"
	"time"
)

// A term that did not last is forgotten when others have led since: the next failure is the first one.
func TestFailuresLongAgo(t *testing.T) {
	o := DefaultOptions()
	o.GiveUp, o.GiveUpFor = 30*time.Second, 20*time.Second
	now := time.Unix(1_700_000_000, 0)
	p := newPatience(&o)
	if _, aside := p.after(now, time.Second, 0); aside {
		t.Error("left to others after one short term")
	}
	now = now.Add(3 * time.Hour)
	for _, served := range []time.Duration{-1, 0} { // it was led elsewhere, and then lost again at once
		if _, aside := p.after(now, 3*time.Hour, served); aside {
			t.Error("left to others because of a term of hours ago")
		}
	}
	if _, aside := p.after(now.Add(31*time.Second), time.Second, 0); !aside {
		t.Error("not left to others although no term lasts")
	}
}
