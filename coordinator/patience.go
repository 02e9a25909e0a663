package coordinator

import "time"

// patience says how long to wait between terms, and when to leave a coordinator to other processes (P-29).
type patience struct {
	first, ceiling time.Duration
	giveUp, aside  time.Duration // see Options.GiveUp

	pause   time.Duration
	failing time.Time // when the first of the terms ended of which none has lasted; zero: the last one has
}

func newPatience(o *Options) *patience {
	return &patience{first: o.RetryFirst, ceiling: o.RetryCeiling, giveUp: o.GiveUp, aside: o.GiveUpFor, pause: o.RetryFirst}
}

// after is told of each try at a term: how long it took with all, and how long the term was served; less than 0: it was not won.
func (p *patience) after(now time.Time, took, served time.Duration) (pause time.Duration, aside bool) {
	if took > p.ceiling {
		p.pause = p.first
	}
	pause, p.pause = p.pause, min(2*p.pause, p.ceiling)
	switch {
	case served > p.ceiling, served < 0 && took > p.giveUp: // others may have led meanwhile
		p.failing = time.Time{}
	case served >= 0 && p.failing.IsZero():
		p.failing = now
	}
	if p.giveUp <= 0 || p.failing.IsZero() || now.Sub(p.failing) < p.giveUp {
		return pause, false
	}
	p.failing, p.pause = time.Time{}, p.first
	return p.aside, true
}
