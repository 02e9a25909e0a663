package topicfeed

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/outage"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Feed watches the names of all topics. Close must be called.
type Feed struct {
	watcher clientv3.Watcher
	keys    keyspace.Space
	log     zerolog.Logger
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	mu        sync.Mutex                        // guards followers, and is held while they are told
	followers map[string]map[*follower]struct{} // by tenant/namespace
}

type follower struct{ changed func(topicname.Name) }

// New starts a feed of what is stored under keys.
func New(watcher clientv3.Watcher, keys keyspace.Space, log zerolog.Logger) *Feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Feed{watcher: watcher, keys: keys, log: log, cancel: cancel, followers: make(map[string]map[*follower]struct{})}
	for _, prefix := range []string{keys.AllTopicNames(), keys.AllPartitioned()} {
		f.tasks.Go(func() { f.run(ctx, prefix) })
	}
	return f
}

// Close ends the feed. It returns when nobody is told anything any more.
func (f *Feed) Close() {
	f.cancel()
	f.tasks.Wait()
}

// Follow has changed called, until stop, with each topic of a namespace (tenant/namespace) that came or went, or partitioned
// topic whose partitions did, and with the zero Name where any may have. It must not block, and must not call stop.
func (f *Feed) Follow(namespace string, changed func(topicname.Name)) (stop func()) {
	one := &follower{changed}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers[namespace] == nil {
		f.followers[namespace] = make(map[*follower]struct{})
	}
	f.followers[namespace][one] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers[namespace], one)
		if len(f.followers[namespace]) == 0 {
			delete(f.followers, namespace)
		}
	}
}

func (f *Feed) run(ctx context.Context, prefix string) {
	var out outage.Outage
	for ; ctx.Err() == nil; out.Pause(ctx) {
		err := f.watch(ctx, prefix, out.Over)
		if begins := out.Failed(); begins && ctx.Err() == nil {
			f.log.Warn().Err(err).Str("prefix", prefix).Msg("the watch of topic names has a gap, those who follow look again")
		}
	}
}

var errWatchEnded = errors.New("the watch ended")

// watch tells of changes until the watch fails, and calls stands when it stands. What happened before, nobody has seen.
func (f *Feed) watch(ctx context.Context, prefix string, stands func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range f.watcher.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return err
		}
		if answer.Created {
			stands()
			f.tellAll()
		}
		for _, event := range answer.Events {
			f.tell(event.Kv.Key)
		}
	}
	return errWatchEnded
}

func (f *Feed) tell(key []byte) {
	domain, tenant, namespace, local, ok := f.keys.ParseTopicName(key)
	if !ok || domain != topicname.Persistent {
		return
	}
	name := topicname.Name{Domain: domain, Tenant: tenant, Namespace: namespace, Local: local}
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers[name.NamespaceName()] {
		one.changed(name)
	}
}

func (f *Feed) tellAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, followers := range f.followers {
		for one := range followers {
			one.changed(topicname.Name{})
		}
	}
}
