package topic

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// expire acknowledges on every subscription what is older than the policies let messages be.
func (t *Topic) expire(now time.Time, policies *Policies) {
	ttl := policies.MessageTTL
	if ttl <= 0 || t.expiring || now.Sub(t.expired) < min(ttl, t.options.ExpiryInterval) || !t.behind(t.behindLast()) {
		return
	}
	t.expiring, t.expired = true, now
	t.findStored(now.Add(-ttl), func(p ledger.Position, err error) {
		t.expiring = false
		if err != nil {
			t.log.Warn().Err(err).Msg("expired messages cannot be looked for, tried again later")
			return
		}
		t.advanceAll(p)
	})
}

// behind reports whether a subscription has not acknowledged everything before p.
func (t *Topic) behind(p ledger.Position) bool {
	for _, s := range t.subscriptions {
		if s.cursor.Frontier().Before(p) {
			return true
		}
	}
	return false
}

// advanceAll acknowledges everything before p on every subscription.
func (t *Topic) advanceAll(p ledger.Position) {
	for _, s := range t.subscriptions {
		if s.cursor.Frontier().Before(p) {
			t.queue.push(&advance{s, p, s.advanced})
		}
	}
}

// advanced is the answer to what the topic does by itself: it looks again later.
func (s *subscription) advanced(err error) {
	if err != nil {
		s.topic.log.Debug().Err(err).Str("sub", s.name).Msg("messages were not dropped, tried again later")
	}
}

// expireSubscriptions deletes durable subscriptions that had no consumer for longer than the policies let them.
//
// Source: PersistentTopic.checkInactiveSubscriptions.
func (t *Topic) expireSubscriptions(now time.Time, policies *Policies) {
	for _, s := range t.subscriptions {
		switch {
		case !s.durable || len(s.consumers) > 0 || s.seeking > 0:
			s.unused = time.Time{}
		case s.unused.IsZero():
			s.unused = now
		case policies.SubscriptionExpiration > 0 && now.Sub(s.unused) >= policies.SubscriptionExpiration && !s.gone:
			t.queue.push(&unsubscribeItem{subscription: s, answer: func(err error) {
				if err == nil {
					t.log.Info().Str("sub", s.name).Msg("subscription without consumers expired")
				}
			}})
		}
	}
}
