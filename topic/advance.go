package topic

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// advance acknowledges everything before a position that can be read, for nobody in particular.
type advance struct {
	subscription *subscription
	before       ledger.Position
	answer       func(error)
}

func (a *advance) prepare(g *group) bool {
	s := a.subscription
	if s.gone {
		return true
	}
	if !g.fits(cursorOps, 0) {
		return false
	}
	if limit := s.topic.maxRead(); limit.Before(a.before) {
		a.before = limit
	}
	s.cursor.AckBefore(a.before)
	maps.DeleteFunc(s.redelivered, func(p ledger.Position, _ uint32) bool { return s.cursor.Done(p) })
	g.touch(s)
	return true
}

func (a *advance) undo() {}

func (a *advance) done(*group) {
	s := a.subscription
	for _, c := range s.consumers {
		for p := range maps.Clone(c.unacked) {
			if s.cursor.Done(p) {
				s.takeWhole(c, p)
			}
		}
	}
	if !s.durable {
		s.cursor.Forget()
	}
	if _, more := s.topic.unsaved[s]; more {
		s.waiting = append(s.waiting, a.answer)
		return
	}
	a.answer(nil)
}

func (a *advance) fail(err error) { a.answer(err) }

// SkipAll acknowledges everything that can be read.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) SkipAll(ctx context.Context, name topicname.Name, named string) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		s.topic.queue.push(&advance{s, s.topic.maxRead(), onlyError(answer)})
	})
	return err
}

// SkipMessages acknowledges the next n entries that are not acknowledged; a batch counts as one.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
//
// Source: PersistentSubscription.skipMessages.
func (ts *Topics) SkipMessages(ctx context.Context, name topicname.Name, named string, n int) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		if n <= 0 {
			answer(struct{}{}, nil)
			return
		}
		s.find(n, func(e *ledger.Entry, err error) {
			before := s.topic.maxRead()
			switch {
			case err != nil:
				answer(struct{}{}, err)
				return
			case e != nil:
				before = e.Position.Next()
			}
			s.topic.queue.push(&advance{s, before, onlyError(answer)})
		})
	})
	return err
}

// ExpireMessages acknowledges what was stored longer than age ago.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) ExpireMessages(ctx context.Context, name topicname.Name, named string, age time.Duration) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		s.topic.findStored(ts.options.Now().Add(-age), func(p ledger.Position, err error) {
			if err != nil {
				answer(struct{}{}, err)
				return
			}
			s.topic.queue.push(&advance{s, p, onlyError(answer)})
		})
	})
	return err
}

// find finds the n-th entry, from 1, that is not acknowledged; nil if there are not so many. then runs in the topic, maybe later.
func (s *subscription) find(n int, then func(*ledger.Entry, error)) {
	s.findFrom(s.cursor.Frontier(), n, then)
}

func (s *subscription) findFrom(from ledger.Position, n int, then func(*ledger.Entry, error)) {
	t := s.topic
	from, limit := s.cursor.SkipDone(from), t.maxRead()
	if !from.Before(limit) {
		then(nil, nil)
		return
	}
	t.asyncRead(func() {
		got, err := t.store.page(t.ctx, t.keys, from, limit, readBytes)
		t.ask(func(alive bool) {
			if !alive || err != nil {
				then(nil, ErrPersistence)
				return
			}
			due := slices.DeleteFunc(got.entries, func(e ledger.Entry) bool { return s.cursor.Done(e.Position) })
			if n <= len(due) {
				then(&due[n-1], nil)
				return
			}
			s.findFrom(got.To, n-len(due), then)
		})
	})
}
