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

// Expected reports whether this process is to lead tc; see coordinator.Leader.
func (l *Leader) Expected(tc uint64) bool { return l.mine(l.place(tc)) }

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
		if now != place && !l.mine(now) {
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
