package nonpersistent

import (
	"sync"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// topic is one topic or partition in use.
type topic struct {
	topics *Topics
	name   topicname.Name

	mu            sync.Mutex // guards the rest, and what producers, subscriptions and consumers of the topic have
	producers     map[string]*producer
	exclusive     *producer // nil: every producer is Shared
	subscriptions map[string]*subscription
	consumers     int
}

func newTopic(ts *Topics, name topicname.Name) *topic {
	return &topic{topics: ts, name: name, producers: make(map[string]*producer), subscriptions: make(map[string]*subscription)}
}

func (t *topic) unused() bool { return len(t.producers) == 0 && t.consumers == 0 }

// forget removes a topic that nobody uses any more.
func (t *topic) forget() {
	t.topics.mu.Lock()
	defer t.topics.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := t.name.String(); t.unused() && t.topics.topics[key] == t {
		delete(t.topics.topics, key)
	}
}

func (t *topic) disconnect() {
	for _, p := range t.producers {
		p.attached = false
		p.client.Disconnect()
	}
	for _, s := range t.subscriptions {
		s.disconnect(nil)
	}
	clear(t.producers)
}
