package etcdleader

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// stuckMargin is how much longer than a lease a free seat is left to the process whose place it is: that one may be dead
	// and not known to be yet.
	stuckMargin = time.Second
	// vacancyInterval is how often it is looked whether a seat that was free still is.
	vacancyInterval = 500 * time.Millisecond
)

// vacancy is since when a seat was found free.
type vacancy struct{ since time.Time }

func (v *vacancy) ended() { v.since = time.Time{} }

// left is how much of limit the seat still has to stay free.
func (v *vacancy) left(limit time.Duration) time.Duration {
	if v.since.IsZero() {
		v.since = time.Now()
	}
	return limit - time.Since(v.since)
}

// kept is a term of another process.
type kept struct {
	term  int64
	since time.Time // when this process was first asked for although the other one leads; zero: it was not yet
}

// ledElsewhere notes the term of another process, 0: there is none.
func (l *Leader) ledElsewhere(tc uint64, term int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known := l.kept[tc]; {
	case term == 0:
		delete(l.kept, tc)
	case known == nil || known.term != term:
		l.kept[tc] = &kept{term: term}
	}
}

// Expected reports whether this process is to lead tc; see coordinator.Leader. Who leads although this is the place hands over soon, or
// took it because this process did not come, and keeps it.
func (l *Leader) Expected(tc uint64) bool {
	mine := l.mine(l.place(tc))
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kept[tc]
	switch {
	case k == nil:
		return mine
	case !mine:
		k.since = time.Time{}
		return false
	case k.since.IsZero():
		k.since = time.Now()
	}
	return time.Since(k.since) < l.options.Lease+stuckMargin
}

// place is who is to lead tc; empty: whoever comes.
func (l *Leader) place(tc uint64) string {
	if l.options.Placement == nil {
		return ""
	}
	return l.options.Placement.Place(tc)
}

func (l *Leader) mine(place string) bool { return place == "" || place == l.options.Instance }

// claim takes a free seat if this process is to lead, or if whoever is has not come. Else it waits until that may have changed.
func (l *Leader) claim(ctx context.Context, tc uint64, vacancy *vacancy) (*Term, error) {
	var changed <-chan struct{}
	if l.options.Placement != nil {
		changed = l.options.Placement.Changed()
	}
	place := l.place(tc)
	left := vacancy.left(l.options.Lease + stuckMargin)
	if l.mine(place) || left <= 0 {
		return l.take(ctx, tc, place)
	}
	again := time.NewTimer(min(left, vacancyInterval))
	defer again.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-changed:
	case <-again.C:
	}
	return nil, nil
}

// watchPlace tells a term that another process is to lead. place is who was to lead when the term was won: if that is another
// process, it did not come, and is not waited for until the place has changed.
func (l *Leader) watchPlace(ctx context.Context, tc uint64, term *Term, place string) {
	for {
		changed := l.options.Placement.Changed()
		now := l.place(tc)
		// Who leaves hands over to whoever is to lead, whether that one came before or not.
		if !l.mine(now) && (now != place || l.options.Placement.Leaving()) {
			close(term.elsewhere)
			return
		}
		place = now
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Holder reads, linearizably, which instance leads tc and in which term. Empty: nobody does.
func (l *Leader) Holder(ctx context.Context, tc uint64) (instance string, term int64, err error) {
	found, err := l.look(ctx, l.space.Leader(tc))
	if err != nil {
		return "", 0, fmt.Errorf("leader of coordinator %d: %w", tc, err)
	}
	if len(found.Kvs) == 0 {
		return "", 0, nil
	}
	instance, _, _ = strings.Cut(string(found.Kvs[0].Value), " ")
	return instance, found.Kvs[0].CreateRevision, nil
}
