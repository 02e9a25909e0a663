package resources

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/outage"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// table is everything below one prefix, held in memory.
type table[V any] struct {
	prefix string
	parse  func(value []byte) (*V, error)
	// changed is called, without mu, after entries have.
	changed func()

	mu      sync.RWMutex
	entries map[string]entry[V] // by what follows prefix in the key
	watched int64               // everything up to this revision has been taken over
}

// entry is the newest known value of a key. A nil value is a deletion, which stays until the watch has told of it, so that an
// older event does not bring the value back.
type entry[V any] struct {
	value    *V
	revision int64
}

func newTable[V any](prefix string, parse func([]byte) (*V, error)) *table[V] {
	return &table[V]{prefix: prefix, parse: parse, changed: func() {}, entries: map[string]entry[V]{}}
}

// get returns a value; nil if there is none. It is shared and never changed.
func (t *table[V]) get(name string) *V {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.entries[name].value
}

// names lists what follows prefix and below in the keys, sorted.
func (t *table[V]) names(below string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := []string{}
	for name, e := range t.entries {
		if rest, ok := strings.CutPrefix(name, below); ok && e.value != nil {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

// wrote takes over what this process wrote or has just read, unless the watch has told of it. value is nil for a deletion.
func (t *table[V]) wrote(name string, value *V, revision int64) {
	defer t.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.watched && revision > t.entries[name].revision {
		t.entries[name] = entry[V]{value, revision}
	}
}

// saw takes over what the watch tells of. value is nil for a deletion.
func (t *table[V]) saw(name string, value *V, revision int64) {
	defer t.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = revision
	switch {
	case revision < t.entries[name].revision:
	case value == nil:
		delete(t.entries, name)
	default:
		t.entries[name] = entry[V]{value, revision}
	}
}

// load reads everything and returns the revision that it is of. unreadable is told of a value that cannot be parsed; unless it
// returns an error, what is known of the key stays.
func (t *table[V]) load(ctx context.Context, kv clientv3.KV, unreadable func(*txn.CorruptError) error) (revision int64, err error) {
	got, err := kv.Get(ctx, t.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	fresh := make(map[string]entry[V], len(got.Kvs))
	for _, pair := range got.Kvs {
		name := strings.TrimPrefix(string(pair.Key), t.prefix)
		value, err := t.parse(pair.Value)
		if err == nil {
			fresh[name] = entry[V]{value, pair.ModRevision}
			continue
		}
		if err := unreadable(&txn.CorruptError{Key: string(pair.Key), Reason: err.Error()}); err != nil {
			return 0, err
		}
		if known := t.get(name); known != nil {
			fresh[name] = entry[V]{known, pair.ModRevision}
		}
	}
	defer t.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, e := range t.entries {
		if e.revision > got.Header.Revision {
			fresh[name] = e
		}
	}
	t.entries, t.watched = fresh, got.Header.Revision
	return got.Header.Revision, nil
}

// follow keeps the table true until ctx ends. revision is that of the load before, timeout bounds one that comes after a gap.
func (t *table[V]) follow(ctx context.Context, kv clientv3.KV, watcher clientv3.Watcher, revision int64, timeout time.Duration, log zerolog.Logger) {
	var gap, unread outage.Outage
	for ; ctx.Err() == nil; gap.Pause(ctx) {
		err := t.watch(ctx, watcher, revision, gap.Over, log)
		if begins := gap.Failed(); begins && ctx.Err() == nil {
			log.Warn().Err(err).Str("prefix", t.prefix).Msg("the watch has a gap, reading everything again")
		}
		for ; ctx.Err() == nil; unread.Pause(ctx) {
			if revision, err = t.reload(ctx, kv, timeout, log); err == nil {
				unread.Over()
				break
			}
			if begins := unread.Failed(); begins && ctx.Err() == nil {
				log.Error().Err(err).Str("prefix", t.prefix).Msg("could not read again, what is known stays in force")
			}
		}
	}
}

// reload is load for a table that is in use.
func (t *table[V]) reload(ctx context.Context, kv clientv3.KV, timeout time.Duration, log zerolog.Logger) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return t.load(ctx, kv, func(corrupt *txn.CorruptError) error {
		log.Error().Err(corrupt).Msg("a value cannot be read, the one before stays in force")
		return nil
	})
}

var errWatchEnded = errors.New("the watch ended")

// watch takes over changes until the watch fails, and calls stands when it stands.
func (t *table[V]) watch(ctx context.Context, watcher clientv3.Watcher, revision int64, stands func(), log zerolog.Logger) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range watcher.Watch(ctx, t.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return err
		}
		if answer.Created {
			stands()
		}
		for _, event := range answer.Events {
			t.apply(event, log)
		}
	}
	return errWatchEnded
}

func (t *table[V]) apply(event *clientv3.Event, log zerolog.Logger) {
	name := strings.TrimPrefix(string(event.Kv.Key), t.prefix)
	if event.Type == clientv3.EventTypeDelete {
		t.saw(name, nil, event.Kv.ModRevision)
		return
	}
	value, err := t.parse(event.Kv.Value)
	if err != nil {
		log.Error().Err(err).Bytes("key", event.Kv.Key).Msg("a changed value cannot be read, the one before stays in force")
		return
	}
	t.saw(name, value, event.Kv.ModRevision)
}
