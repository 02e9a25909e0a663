package topic

import (
	"context"
	"errors"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// useless reports whether the policies let the topic be deleted if nobody uses it: nobody is subscribed and it has no entry, or
// all subscriptions have acknowledged everything.
//
// Source: PersistentTopic.isActive. Pulsar deletes a topic without subscriptions with the data that it retains; here a topic that
// has entries stays, because whoever wrote them may expect to find them.
func (t *Topic) useless(policies *Policies) bool {
	if !policies.DeleteInactive || t.buffer.Len() > 0 {
		return false
	}
	if len(t.subscriptions) == 0 {
		return !t.first.Before(t.behindLast())
	}
	return policies.DeleteCaughtUp && !t.behind(t.behindLast())
}

// inactive reports whether the topic is to be deleted.
func (t *Topic) inactive(now time.Time, policies *Policies) bool {
	return t.useless(policies) && !t.connected() && !t.idleSince.IsZero() && now.Sub(t.idleSince) >= policies.InactiveAfter
}

// deleteInactive deletes a topic that nobody uses, unless somebody comes meanwhile. done is called when that is decided.
func (ts *Topics) deleteInactive(name topicname.Name, done func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing {
		return
	}
	ts.tasks.Go(func() {
		defer done()
		unused := func(t *Topic) bool {
			policies := t.options.Policies(t.name)
			return t.inactive(t.options.Now(), &policies)
		}
		ctx, cancel := context.WithTimeout(ts.ctx, ts.options.LoadTimeout)
		defer cancel()
		err := ts.remove(ctx, removal{names: []topicname.Name{name}, unused: unused})
		switch {
		case err == nil:
			ts.options.Log.Info().Str("topic", name.String()).Msg("inactive topic deleted")
		case !errors.Is(err, ErrTopicBusy) && !errors.Is(err, ErrTopicNotFound) && ts.ctx.Err() == nil:
			ts.options.Log.Warn().Err(err).Str("topic", name.String()).Msg("inactive topic cannot be deleted, tried again later")
		}
	})
}
