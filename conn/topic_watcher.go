package conn

import (
	"context"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

const (
	// maxTopicWatchers bounds the watchers of one connection: a client has one for each pattern consumer.
	maxTopicWatchers = 100
	// maxWatchedBytes bounds the names that the watchers of all connections keep when they begin.
	maxWatchedBytes = 256 << 20
	// collectPause is the time in which changes are collected before a list is made anew.
	collectPause = 50 * time.Millisecond
	// relistPause is the time before a list that failed is made again.
	relistPause = time.Second
)

// topicWatcher is a list of topics that its client is told the changes of.
type topicWatcher struct {
	id        uint64
	namespace string
	pattern   topicPattern
	changed   chan struct{} // a token: the list may have changed since it was made
	cancel    context.CancelFunc

	// Guarded by session.mu.
	told   bool
	topics []string // what the client knows, sorted
}

// note leaves a token if name may belong to the list. However much changes, one token waits.
func (w *topicWatcher) note(name topicname.Name) {
	if name != (topicname.Name{}) && !w.pattern.matches(name) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// watchedTopics makes the list anew, when the peer has read what it was sent before. A namespace that is gone has no topics.
func (r request) watchedTopics(ctx context.Context, w *topicWatcher) ([]string, error) {
	if !r.awaitListing() {
		return nil, context.Cause(ctx)
	}
	defer r.listed()
	topics, err := r.services.Topics.TopicsOfNamespace(ctx, w.namespace, pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT)
	if err != nil {
		return nil, err
	}
	return w.pattern.filter(topics), nil
}

// followTopics tells of changes until ctx ends or the caller loses the right to list.
func (r request) followTopics(ctx context.Context, w *topicWatcher) {
	var due <-chan time.Time
	for {
		select {
		case <-w.changed:
			if due == nil {
				due = time.After(collectPause)
			}
			continue
		case <-due:
			due = nil
		case <-ctx.Done():
			return
		}
		var topics []string
		err := r.mayListTopics(w.namespace)
		if err == nil {
			topics, err = r.watchedTopics(ctx, w)
		}
		switch {
		case err == nil:
			r.tellChanges(w, topics)
		case errorCode(err) == pulsarproto.ServerError_TopicNotFound:
			r.tellChanges(w, nil)
		case errorCode(err) == pulsarproto.ServerError_AuthorizationError:
			r.log.Debug().Err(err).Str("namespace", w.namespace).Msg("topic list watcher ends")
			return
		default:
			r.log.Debug().Err(err).Str("namespace", w.namespace).Msg("topic list cannot be made, tried again")
			due = time.After(relistPause)
		}
	}
}

// tellChanges sends what has changed between the list that the client knows and topics.
func (r request) tellChanges(w *topicWatcher, topics []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added, deleted := difference(topics, w.topics), difference(w.topics, topics)
	if len(added)+len(deleted) == 0 || r.topicWatchers[w.id] != w {
		return
	}
	r.server.watched.Add(int64(listSize(topics) - listSize(w.topics)))
	w.topics = topics
	hash := topicsHash(topics)
	update := func(added, deleted []string) {
		r.out.queue(func(b []byte) []byte { return pulsarproto.AppendWatchTopicUpdate(b, w.id, added, deleted, hash) })
	}
	if listSize(added)+listSize(deleted) <= r.options.MaxMessageSize {
		update(added, deleted)
		return
	}
	for piece := range pieces(deleted, r.options.MaxMessageSize) {
		update(nil, piece)
	}
	for piece := range pieces(added, r.options.MaxMessageSize) {
		update(piece, nil)
	}
}

// difference returns what of a is not in b. Both are sorted.
func difference(a, b []string) []string {
	var only []string
	for _, topic := range a {
		if _, found := slices.BinarySearch(b, topic); !found {
			only = append(only, topic)
		}
	}
	return only
}

// pieces cuts topics into runs of at most maxBytes, or of one.
func pieces(topics []string, maxBytes int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(topics) > 0 {
			n, size := 1, listSize(topics[:1])
			for n < len(topics) && size+listSize(topics[n:n+1]) <= maxBytes {
				size += listSize(topics[n : n+1])
				n++
			}
			if !yield(topics[:n]) {
				return
			}
			topics = topics[n:]
		}
	}
}

// keepWatched counts the bytes of a list that begins to be watched, unless too many would be.
func (s *Server) keepWatched(bytes int) bool {
	if s.watched.Add(int64(bytes)) <= maxWatchedBytes {
		return true
	}
	s.watched.Add(-int64(bytes))
	return false
}

// removeTopicWatcher forgets a watcher that has ended.
func (s *session) removeTopicWatcher(w *topicWatcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topicWatchers[w.id] == w {
		delete(s.topicWatchers, w.id)
	}
	s.server.watched.Add(-int64(listSize(w.topics)))
}
