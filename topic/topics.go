package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Topics is all embedded topics. It implements conn.Topics.
type Topics struct {
	options Options
	store   store
	budget  cacheBudget
	// compacting has a token for each compaction that reads.
	compacting chan struct{}
	// ctx ends when Close has given up waiting.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // goroutines of no topic

	mu      sync.Mutex // guards the rest
	slots   map[string]*slot
	topics  map[*Topic]struct{}
	dormant map[topicname.Name]dormant // unloaded topics that time has something to do with
	closing bool
	leaving bool // other instances serve from now on
	loads   sync.WaitGroup
	closed  sync.WaitGroup // closed topics of which something still runs
}

// slot is the place of one topic, from the moment that a load begins.
type slot struct {
	ready chan struct{} // closed when topic or err is set
	topic *Topic
	err   error
}

// New returns the topics that are stored under options.Keys. Close must be called.
func New(options Options) *Topics {
	options = options.withDefaults()
	ts := &Topics{
		options: options,
		store:   store{options.KV, options.StoreTimeout},
		slots:   make(map[string]*slot),
		topics:  make(map[*Topic]struct{}),
		dormant: make(map[topicname.Name]dormant),

		compacting: make(chan struct{}, maxCompactions),
	}
	ts.budget.limit = options.CacheBytes
	ts.ctx, ts.cancel = context.WithCancel(context.Background())
	if options.Creator == nil {
		ts.options.Creator = ts.ownCreator()
	}
	ts.tasks.Go(ts.tick)
	if options.Instance == nil {
		ts.tasks.Go(ts.resumeSweeps)
		return ts
	}
	ts.tasks.Go(ts.followSessions)
	ts.tasks.Go(ts.followDeletions)
	ts.tasks.Go(ts.sweepForAll)
	return ts
}

func (ts *Topics) ownCreator() *etcdcreator.Creator {
	options := etcdcreator.Options{KV: ts.options.KV, Keys: ts.options.Keys, Log: ts.options.Log, Timeout: ts.options.StoreTimeout}
	if ts.options.Instance != nil {
		options.Instance = func() etcdcreator.Instance { return ts.options.Instance }
	}
	creator := etcdcreator.New(options)
	ts.tasks.Go(func() {
		<-ts.ctx.Done()
		creator.Close()
	})
	return creator
}

func (ts *Topics) tick() {
	interval := min(ts.options.TrimInterval, ts.options.IdleUnload)
	if ts.options.BacklogInterval > 0 {
		interval = min(interval, ts.options.BacklogInterval)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, t := range ts.all() {
				t.postTick()
			}
			ts.revisit()
		case <-ts.ctx.Done():
			return
		}
	}
}

func (ts *Topics) all() []*Topic {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	out := make([]*Topic, 0, len(ts.topics))
	for t := range ts.topics {
		out = append(out, t)
	}
	return out
}

// Close answers what waits, as long as ctx allows, and closes all topics. It returns when nothing of them runs any more.
func (ts *Topics) Close(ctx context.Context) {
	ts.mu.Lock()
	ts.closing = true
	ts.mu.Unlock()
	giveUp := context.AfterFunc(ctx, ts.cancel)
	defer giveUp()
	ts.loads.Wait()
	ts.closeAll(ctx, func(*Topic) {})
	ts.cancel()
	ts.tasks.Wait()
	ts.closed.Wait()
}

// closeAll begins to close every loaded topic and returns when all are closed. What waits is answered, as long as ctx allows.
func (ts *Topics) closeAll(ctx context.Context, begin func(*Topic)) {
	all := ts.all()
	var drained sync.WaitGroup
	for _, t := range all {
		t.post(func(alive bool) {
			if alive {
				begin(t)
			}
		})
		drained.Add(1)
		t.drain(drained.Done)
	}
	stop := context.AfterFunc(ctx, func() {
		for _, t := range all {
			t.abandon(txn.ErrNotReady)
		}
	})
	drained.Wait()
	stop()
}

// loaded returns the topic if it is loaded, without waiting.
func (ts *Topics) loaded(fullName string) *Topic {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.slots[fullName]
	if s == nil {
		return nil
	}
	select {
	case <-s.ready:
		return s.topic
	default:
		return nil
	}
}

// load returns the topic, after loading it if it is not loaded. create lets a missing one be made, where settings allow it.
func (ts *Topics) load(ctx context.Context, name topicname.Name, create bool) (*Topic, error) {
	for {
		s, mine, err := ts.slot(name.String())
		if err != nil {
			return nil, err
		}
		if mine {
			go ts.open(s, name, create)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, fmt.Errorf("load %s: %w", name, context.Cause(ctx))
		}
		// Whoever began the load may not have been allowed to create the topic.
		if errors.Is(s.err, ErrTopicNotFound) && create && !mine {
			continue
		}
		return s.topic, s.err
	}
}

func (ts *Topics) slot(fullName string) (s *slot, mine bool, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing {
		return nil, false, fmt.Errorf("%w: the server is closing", txn.ErrNotReady)
	}
	if s := ts.slots[fullName]; s != nil {
		return s, false, nil
	}
	if ts.leaving {
		return nil, false, errLeaving
	}
	s = &slot{ready: make(chan struct{})}
	ts.slots[fullName] = s
	ts.loads.Add(1)
	return s, true, nil
}

// open fills a slot. Store errors are tried again until LoadTimeout.
func (ts *Topics) open(s *slot, name topicname.Name, create bool) {
	defer ts.loads.Done()
	ctx, cancel := context.WithTimeout(ts.ctx, ts.options.LoadTimeout)
	defer cancel()
	pause := 20 * time.Millisecond
	for {
		t, err := ts.read(ctx, name, create)
		if err == nil || definite(err) {
			ts.fill(s, name.String(), t, err)
			return
		}
		level := zerolog.WarnLevel
		if errors.Is(err, errOwnerGone) { // every topic of an instance that died comes by here
			level = zerolog.DebugLevel
		}
		ts.options.Log.WithLevel(level).Err(err).Str("topic", name.String()).Msg("topic cannot be loaded, tried again")
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-ctx.Done():
			ts.fill(s, name.String(), nil, fmt.Errorf("%w: load %s: %v", txn.ErrNotReady, name, err))
			return
		}
	}
}

// definite reports whether trying again cannot help.
func definite(err error) bool {
	var refusal *cnx.Refusal
	var corrupt *txn.CorruptError
	var elsewhere *NotOwnerError
	return errors.As(err, &refusal) || errors.As(err, &elsewhere) || errors.As(err, &corrupt) || errors.Is(err, txn.ErrNotAllowed)
}

func (ts *Topics) fill(s *slot, fullName string, t *Topic, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var corrupt *txn.CorruptError
	if errors.As(err, &corrupt) {
		ts.options.Log.Error().Err(err).Str("topic", fullName).Msg("topic is corrupt and stays closed")
		err = fmt.Errorf("%w: %w", ErrPersistence, err)
	}
	s.topic, s.err = t, err
	if t != nil {
		ts.topics[t] = struct{}{}
		if left, found := ts.dormant[t.name]; found {
			if ts.options.Instance == nil { // else another instance may have left it since, and the store knows
				t.wake(left)
			}
			delete(ts.dormant, t.name)
		}
	} else {
		delete(ts.slots, fullName)
	}
	close(s.ready)
	if t != nil && t.sessionOver() { // followSessions may have looked before
		t.abandon(errSessionLost)
	}
}

// forget makes the next use of a closing topic load it again.
func (ts *Topics) forget(t *Topic) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if s := ts.slots[t.fullName]; s != nil && s.topic == t {
		delete(ts.slots, t.fullName)
	}
	delete(ts.topics, t)
	ts.closed.Go(t.tasks.Wait)
}
