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
	if len(t.aborting)+len(t.unsaved)+len(t.asking)+len(t.creating) > 0 || t.finding || t.trim.running {
		return false
	}
	for _, s := range t.subscriptions {
		if len(s.consumers) > 0 || s.seeking || s.reading || len(s.commits)+len(s.waiting) > 0 {
			return false
		}
	}
	return true
}

// rest unloads the topic when it was idle for long enough. Nobody is connected and nothing waits, so nobody notices: a command
// that comes from now on finds it closed, and loads it again.
func (t *Topic) rest(now time.Time) {
	switch {
	case !t.idle():
		t.idleSince = time.Time{}
	case t.idleSince.IsZero():
		t.idleSince = now
	case now.Sub(t.idleSince) >= t.options.IdleUnload:
		if t.first.Before(t.needless(t.behindLast())) {
			t.registry.leaveUntrimmed(t.name, t.trim.marks[len(t.trim.marks)-1])
		}
		t.shut(errClosing)
	}
}

// leaveUntrimmed notes that an unloaded topic has entries that nobody needs, but that are not old enough to be deleted.
func (ts *Topics) leaveUntrimmed(name topicname.Name, mark endMark) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.untrimmed[name] = mark
}

// revisits bounds the topics that one look at unloaded ones loads, so that many that were used at the same time are not all in
// memory at the same time again.
const revisits = 500

// revisit loads unloaded topics that have something to delete.
func (ts *Topics) revisit() {
	for _, name := range ts.due() {
		t, err := ts.load(ts.ctx, name, false)
		if definite(err) {
			ts.mu.Lock()
			delete(ts.untrimmed, name)
			ts.mu.Unlock()
		}
		if err != nil {
			ts.options.Log.Warn().Err(err).Str("topic", name.String()).Msg("topic cannot be loaded, its old entries are not deleted now")
			continue
		}
		t.postTick()
	}
}

// due returns unloaded topics whose entries are old enough now.
func (ts *Topics) due() []topicname.Name {
	now := ts.options.Now()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []topicname.Name
	for name, mark := range ts.untrimmed {
		if len(names) == revisits {
			break
		}
		if now.Sub(mark.at) >= ts.options.Retention {
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
