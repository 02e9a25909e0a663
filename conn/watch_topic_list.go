package conn

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// watchTopicList answers the topics of a namespace that match a pattern, and tells of changes from then on. Who asks has read
// in CONNECTED that it can; others are never told. A repeat for a watcher that there is gets its list again.
// Errors: NotAllowedError for a pattern that is not matched here, AuthorizationError, TooManyRequests, ServiceNotReady for a
// repeat while the first is under way, and those of Topics.TopicsOfNamespace.
//
// Source: PulsarApi.proto CommandWatchTopicList; TopicListService.handleWatchTopicList.
func (r request) watchTopicList(cmd *pulsarproto.CommandWatchTopicList) {
	pattern, err := r.options.topicPattern(cmd.GetTopicsPattern())
	if err == nil && !r.watchesTopics() {
		err = errNoTopicWatchers
	}
	if err != nil {
		r.refuseWatch(cmd, cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Unable to create topic list watcher: "+err.Error()))
		return
	}
	w := r.addTopicWatcher(cmd, pattern)
	if w == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	w.cancel = cancel
	r.requests.Go(func() {
		defer cancel()
		defer r.removeTopicWatcher(w)
		r.startTopicWatcher(ctx, w, cmd)
	})
}

// errNoTopicWatchers has the words of one switched off.
var errNoTopicWatchers = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Evaluating subscription patterns is disabled.")

// watchesTopics reports whether clients can watch lists of topics here.
func (s *session) watchesTopics() bool {
	return s.services.TopicFeed != nil && s.options.MaxPatternLength >= 0
}

func (r request) refuseWatch(cmd *pulsarproto.CommandWatchTopicList, err error) {
	r.fail(pulsarproto.BaseCommand_WATCH_TOPIC_LIST, cmd.GetRequestId(), err)
}

// addTopicWatcher returns a new watcher, or answers the request.
func (r request) addTopicWatcher(cmd *pulsarproto.CommandWatchTopicList, pattern topicPattern) *topicWatcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.topicWatchers[cmd.GetWatcherId()]; w != nil {
		if w.told {
			r.answerWatch(cmd, w)
		} else {
			r.refuseWatch(cmd, cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, "Topic list watcher is already present on the connection"))
		}
		return nil
	}
	if len(r.topicWatchers) >= maxTopicWatchers {
		r.refuseWatch(cmd, cnx.Refuse(pulsarproto.ServerError_TooManyRequests,
			fmt.Sprintf("the connection has %d topic list watchers, the most there can be", maxTopicWatchers)))
		return nil
	}
	w := &topicWatcher{id: cmd.GetWatcherId(), namespace: cmd.GetNamespace(), pattern: pattern, changed: make(chan struct{}, 1)}
	if r.topicWatchers == nil {
		r.topicWatchers = make(map[uint64]*topicWatcher)
	}
	r.topicWatchers[w.id] = w
	return w
}

// startTopicWatcher answers the request, and tells of changes until ctx ends. It follows the namespace before it lists it, so
// that no change is missed in between.
func (r request) startTopicWatcher(ctx context.Context, w *topicWatcher, cmd *pulsarproto.CommandWatchTopicList) {
	if err := r.mayListTopics(w.namespace); err != nil {
		r.refuseWatch(cmd, err)
		return
	}
	defer r.services.TopicFeed.Follow(w.namespace, w.note)()
	topics, err := r.watchedTopics(ctx, w)
	if err == nil {
		err = r.checkListSize(w.namespace, topics)
	}
	if err == nil {
		err = r.watchBegins(cmd, w, topics)
	}
	if err != nil {
		r.refuseWatch(cmd, err)
		return
	}
	r.followTopics(ctx, w)
}

// watchBegins answers the request, unless the watcher was closed meanwhile.
func (r request) watchBegins(cmd *pulsarproto.CommandWatchTopicList, w *topicWatcher, topics []string) error {
	if !r.server.keepWatched(listSize(topics)) {
		return cnx.Refuse(pulsarproto.ServerError_TooManyRequests, "too many topics are watched on all connections")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w.topics = topics
	if r.topicWatchers[w.id] != w {
		return cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, "Topic list watcher was closed before it was created")
	}
	w.told = true
	r.answerWatch(cmd, w)
	return nil
}

// answerWatch answers the request with what w has; mu is held.
func (r request) answerWatch(cmd *pulsarproto.CommandWatchTopicList, w *topicWatcher) {
	topics, hash := w.topics, topicsHash(w.topics)
	if cmd.TopicsHash != nil && cmd.GetTopicsHash() == hash {
		topics = nil
	}
	r.answer(func(b []byte) []byte {
		return pulsarproto.AppendWatchTopicListSuccess(b, cmd.GetRequestId(), w.id, topics, hash)
	})
}

// watchTopicListClose ends a watcher. An unknown one has ended already.
//
// Source: PulsarApi.proto CommandWatchTopicListClose; TopicListService.handleWatchTopicListClose.
func (r request) watchTopicListClose(cmd *pulsarproto.CommandWatchTopicListClose) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.topicWatchers[cmd.GetWatcherId()]; w != nil {
		delete(r.topicWatchers, w.id)
		w.cancel()
	}
	r.succeed(cmd.GetRequestId())
}
