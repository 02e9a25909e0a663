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
	short := func(waited, served time.Duration) try {
		return try{took: waited + time.Second, waited: waited, served: served}
	}
	if _, aside := p.after(now, short(0, 0)); aside {
		t.Error("left to others after one short term")
	}
	now = now.Add(3 * time.Hour)
	if _, aside := p.after(now, short(3*time.Hour, 0)); aside { // it was led elsewhere, and then lost again at once
		t.Error("left to others because of a term of hours ago")
	}
	now = now.Add(3 * time.Hour)
	for _, waited := range []time.Duration{3 * time.Hour, 0} { // it was led elsewhere, not won, and then lost again at once
		if _, aside := p.after(now, short(waited, -1)); aside {
			t.Error("left to others because of a term of hours ago, which was followed by one that was not won")
		}
	}
	if _, aside := p.after(now, short(0, 0)); aside {
		t.Error("left to others after one short term behind hours")
	}
	if _, aside := p.after(now.Add(31*time.Second), short(0, 0)); !aside {
		t.Error("not left to others although no term lasts")
	}
}
