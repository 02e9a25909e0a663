package topic

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// idle reports whether nobody uses the topic and nothing of it runs.
func (t *Topic) idle() bool {
	if len(t.producers) > 0 || t.writing != nil || !t.queue.empty() || len(t.draining) > 0 {
		return false
	}
	if len(t.aborting)+len(t.unsaved)+len(t.asking)+len(t.creating) > 0 || t.finding {
		return false
	}
	for _, s := range t.subscriptions {
		if len(s.consumers) > 0 || s.seeking || s.reading || len(s.commits)+len(s.waiting) > 0 {
			return false
		}
	}
	return true
}

// rest deletes the topic, if its policies want that, or unloads it, when it was idle for long enough. Nobody is connected and
// nothing waits, so nobody notices: a command that comes from now on finds it closed, and loads it again.
func (t *Topic) rest(now time.Time, policies *Policies) {
	switch {
	case !t.idle():
		t.idleSince = time.Time{}
	case t.compaction.running, t.trim.running, t.trim.looking, t.expiring, t.aging, t.deleting: // not now
	case t.idleSince.IsZero():
		t.idleSince = now
	case t.inactive(now, policies):
		t.deleting = true
		t.registry.deleteInactive(t.name, func() { t.post(func(bool) { t.deleting = false }) })
	case now.Sub(t.idleSince) >= t.options.IdleUnload:
		if due, some := t.dueAgain(now, policies); some {
			t.registry.leave(t.name, t.dormant(due))
		}
		t.shut(errClosing)
	}
}

// dormant is what is remembered of an unloaded topic that has to be looked at again.
type dormant struct {
	due       time.Time
	mark      endMark // where the log ended when
	idleSince time.Time
	unused    map[string]time.Time // subscriptions, and since when they have no consumers
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

func (t *Topic) dormant(due time.Time) dormant {
	d := dormant{due: due, mark: t.trim.marks[len(t.trim.marks)-1], idleSince: t.idleSince, unused: make(map[string]time.Time)}
	for name, s := range t.subscriptions {
		d.unused[name] = s.unused
	}
	return d
}

// wake makes a topic that is loaded again as it was left.
func (t *Topic) wake(d dormant) {
	t.trim.marks = []endMark{d.mark, t.trim.marks[0]}
	t.idleSince = d.idleSince
	for name, since := range d.unused {
		if s := t.subscriptions[name]; s != nil {
			s.unused = since
		}
	}
}

// leave notes that an unloaded topic has to be looked at again.
func (ts *Topics) leave(name topicname.Name, d dormant) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.dormant[name] = d
}

// revisits bounds the topics that one look at unloaded ones loads, so that many that were used at the same time are not all in
// memory at the same time again.
const revisits = 500

// revisit loads unloaded topics that time has something to do with.
func (ts *Topics) revisit() {
	for _, name := range ts.due() {
		t, err := ts.load(ts.ctx, name, false)
		if definite(err) {
			ts.mu.Lock()
			delete(ts.dormant, name)
			ts.mu.Unlock()
		}
		if err != nil {
			ts.options.Log.Warn().Err(err).Str("topic", name.String()).Msg("topic cannot be loaded, it is looked after later")
			continue
		}
		t.postTick()
	}
}

// due returns the unloaded topics whose time has come.
func (ts *Topics) due() []topicname.Name {
	now := ts.options.Now()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []topicname.Name
	for name, d := range ts.dormant {
		if len(names) == revisits {
			break
		}
		if !now.Before(d.due) {
			names = append(names, name)
		}
	}
	return names
}

func (t *Topic) postTick() {
	t.post(func(alive bool) {
		if alive {
			t.tick()
		}
	})
}
