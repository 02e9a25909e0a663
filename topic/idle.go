package topic

import (
	"time"
)

// idle reports whether nobody uses the topic and nothing of it runs.
func (t *Topic) idle() bool {
	if len(t.producers) > 0 || t.writing != nil || !t.queue.empty() || len(t.draining) > 0 {
		return false
	}
	if len(t.aborting)+len(t.unsaved)+len(t.folding.subscriptions)+len(t.asking)+len(t.creating) > 0 || t.finding {
		return false
	}
	for _, s := range t.subscriptions {
		if len(s.consumers) > 0 || s.seeking > 0 || s.reading || len(s.commits)+len(s.waiting) > 0 {
			return false
		}
	}
	return true
}

// rest deletes the topic, if its policies want that, or unloads it, when it was idle for long enough. Nobody is connected and
// nothing waits, so nobody notices: a command that comes from now on finds it closed, and loads it again.
func (t *Topic) rest(now time.Time, policies *Policies) {
	switch {
	case t.deleting: // what runs for that is no use
	case !t.idle():
		t.idleSince = time.Time{}
	case t.compaction.running, t.trim.running, t.trim.looking, t.expiring, t.aging: // not now
	case t.idleSince.IsZero():
		t.idleSince = now
	case t.inactive(now, policies):
		t.deleting = true
		t.registry.deleteInactive(t.name, func() { t.post(func(bool) { t.deleting = false }) })
	case now.Sub(t.idleSince) >= t.options.IdleUnload:
		if !t.settling.stop() {
			t.admitSettlements()
			return
		}
		if due, some := t.dueAgain(now, policies); some {
			left := t.dormant(due)
			t.left = &left
			t.registry.leave(t.name, left)
		}
		t.giveUp(errClosing)
	}
}

// dueAgain returns when time changes something of the topic though nobody uses it.
func (t *Topic) dueAgain(now time.Time, policies *Policies) (due time.Time, some bool) {
	at := func(when time.Time) {
		if !some || when.Before(due) {
			due, some = when, true
		}
	}
	bounded := policies.RetentionTime >= 0 && policies.RetentionBytes != 0 || policies.RetentionTime == 0
	if t.first.Before(t.needless(t.behindLast())) && bounded {
		at(t.trim.marks[len(t.trim.marks)-1].at.Add(max(t.options.Retention, policies.RetentionTime)))
	}
	if policies.MessageTTL > 0 && t.behind(t.behindLast()) {
		at(now.Add(policies.MessageTTL))
	}
	if t.useless(policies) {
		at(t.idleSince.Add(policies.InactiveAfter))
	}
	if policies.SubscriptionExpiration > 0 {
		for _, s := range t.subscriptions {
			at(s.unused.Add(policies.SubscriptionExpiration))
		}
	}
	return due, some
}

func (t *Topic) postTick() {
	t.post(func(alive bool) {
		if alive {
			t.tick()
		}
	})
}
