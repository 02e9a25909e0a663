package nonpersistent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Options say how topics behave.
type Options struct {
	// Exists says whether a namespace exists. It may block. Nil: all do.
	Exists func(ctx context.Context, namespace string) (bool, error)
	// Serves refuses topics that another instance is to serve, if it is set. It must not block, and its answer may change: see Recheck.
	Serves func(topicname.Name) error
	// Limits says what bounds a topic. It must not block. Nil: nothing does.
	Limits func(topicname.Name) Limits
}

// Limits are the most that one topic may have of each; 0 is no limit.
type Limits struct{ Producers, Consumers, Subscriptions int }

// Topics is all non-persistent topics of a process.
type Topics struct {
	options Options

	mu     sync.Mutex // guards the rest; taken before the lock of a topic
	topics map[string]*topic
	names  uint64 // of producers that were given one
}

// New returns no topics.
func New(options Options) *Topics {
	if options.Limits == nil {
		options.Limits = func(topicname.Name) Limits { return Limits{} }
	}
	return &Topics{options: options, topics: make(map[string]*topic)}
}

func (ts *Topics) check(ctx context.Context, name topicname.Name) error {
	if ts.options.Exists == nil {
		return nil
	}
	exists, err := ts.options.Exists(ctx, name.NamespaceName())
	if err != nil {
		return fmt.Errorf("look up namespace %s: %w", name.NamespaceName(), err)
	}
	if !exists {
		return cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Namespace not found: "+name.NamespaceName())
	}
	return nil
}

func (ts *Topics) serves(name topicname.Name) error {
	if ts.options.Serves == nil {
		return nil
	}
	return ts.options.Serves(name)
}

// Recheck disconnects everybody from the topics that another instance is to serve by now.
func (ts *Topics) Recheck() {
	ts.mu.Lock()
	var gone []topicname.Name
	for _, t := range ts.topics {
		if ts.serves(t.name) != nil {
			gone = append(gone, t.name)
		}
	}
	ts.mu.Unlock()
	for _, name := range gone {
		ts.Unload(name)
	}
}

// use runs f with the topic, which is made if it does not exist, and goes again if nobody uses it after f. A topic that another
// instance is to serve is refused under the lock, so that Recheck finds who came before it had to be.
func (ts *Topics) use(name topicname.Name, f func(*topic) error) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if err := ts.serves(name); err != nil {
		return err
	}
	key := name.String()
	t := ts.topics[key]
	if t == nil {
		t = newTopic(ts, name)
		ts.topics[key] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := f(t)
	if t.unused() {
		delete(ts.topics, key)
	}
	return err
}

// List returns the full names of the topics of a namespace that are in use, in order.
func (ts *Topics) List(namespace string) []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []string
	for key, t := range ts.topics {
		if t.name.NamespaceName() == namespace {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// Exists reports whether somebody uses the topic.
func (ts *Topics) Exists(name topicname.Name) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.topics[name.String()] != nil
}

// Unload disconnects everybody from the topic; they come again. It reports whether somebody used it.
func (ts *Topics) Unload(name topicname.Name) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.topics[name.String()]
	if t == nil {
		return false
	}
	delete(ts.topics, name.String())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disconnect()
	return true
}
