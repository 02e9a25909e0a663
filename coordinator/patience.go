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

// try is one try at a term.
type try struct {
	took       time.Duration // with all
	waited     time.Duration // until it was won, or it was clear that it is not
	served     time.Duration // less than 0: it was not won
	handedOver bool
}

// after is told of each try.
func (p *patience) after(now time.Time, t try) (pause time.Duration, aside bool) {
	if t.took > p.ceiling || t.handedOver {
		p.pause = p.first
	}
	pause, p.pause = p.pause, min(2*p.pause, p.ceiling)
	if t.waited > p.giveUp { // others may have led meanwhile
		p.failing = time.Time{}
	}
	switch {
	case t.served > p.ceiling:
		p.failing = time.Time{}
	case t.served >= 0 && !t.handedOver && p.failing.IsZero():
		p.failing = now
	}
	if p.giveUp <= 0 || p.failing.IsZero() || now.Sub(p.failing) < p.giveUp {
		return pause, false
	}
	p.failing, p.pause = time.Time{}, p.first
	return p.aside, true
}
