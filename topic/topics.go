package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Topics is all embedded topics. It implements conn.Topics.
type Topics struct {
	options Options
	store   store
	budget  cacheBudget
	// ctx ends when Close has given up waiting.
	ctx    context.Context
	cancel context.CancelFunc
	ticker sync.WaitGroup

	mu         sync.Mutex // guards the rest
	slots      map[string]*slot
	topics     map[*Topic]struct{}
	namespaces map[string]bool // known to exist
	closing    bool
	loads      sync.WaitGroup
	closed     sync.WaitGroup // closed topics of which something still runs
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
		options:    options,
		store:      store{options.KV, options.StoreTimeout},
		slots:      make(map[string]*slot),
		topics:     make(map[*Topic]struct{}),
		namespaces: map[string]bool{"public/default": true, topicname.SystemNamespace: true},
	}
	ts.budget.limit = options.CacheBytes
	ts.ctx, ts.cancel = context.WithCancel(context.Background())
	ts.ticker.Go(ts.tick)
	return ts
}

func (ts *Topics) tick() {
	ticker := time.NewTicker(ts.options.TrimInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, t := range ts.all() {
				t.post(func(alive bool) {
					if alive {
						t.tick()
					}
				})
			}
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
	all := ts.all()
	var drained sync.WaitGroup
	for _, t := range all {
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
	ts.cancel()
	ts.ticker.Wait()
	ts.closed.Wait()
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
		ts.options.Log.Warn().Err(err).Str("topic", name.String()).Msg("topic cannot be loaded, tried again")
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
	var refusal *Error
	var corrupt *txn.CorruptError
	return errors.As(err, &refusal) || errors.As(err, &corrupt) || errors.Is(err, txn.ErrNotAllowed)
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
	} else {
		delete(ts.slots, fullName)
	}
	close(s.ready)
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

// EndTxn implements conn.Topics. A participant that does not exist has nothing to apply, and is not created (O-4); one that is
// not loaded is loaded (O-10). The low water mark is not used: what it would sweep cannot come to be here, because nothing is
// stored behind a decision.
func (ts *Topics) EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, _ uint64, done func(error)) {
	if action != txn.Commit && action != txn.Abort {
		done(fmt.Errorf("%w: unknown action %d", txn.ErrNotAllowed, action))
		return
	}
	name, err := topicname.Parse(participant.Topic)
	if err != nil {
		done(fmt.Errorf("%w: %w", txn.ErrInvalidTopicName, err))
		return
	}
	if name.Domain != topicname.Persistent || name.TransactionInternal() {
		done(nil)
		return
	}
	if t := ts.loaded(name.String()); t != nil {
		t.applyEnd(id, participant, action, done)
		return
	}
	go func() {
		t, err := ts.load(ctx, name, false)
		switch {
		case errors.Is(err, ErrTopicNotFound), errors.Is(err, ErrNamespaceNotFound), errors.Is(err, txn.ErrNotAllowed):
			done(nil)
		case err != nil:
			done(err)
		default:
			t.applyEnd(id, participant, action, done)
		}
	}()
}

// applyEnd queues an end behind everything that came before it.
func (t *Topic) applyEnd(id txn.ID, participant txn.Participant, action txn.Action, done func(error)) {
	t.ask(func(alive bool) {
		switch {
		case !alive:
			done(fmt.Errorf("%w: %s is closing", txn.ErrNotReady, t.fullName))
		case participant.Kind == txn.AckedSubscription:
			t.queue.push(&endAckItem{topic: t, subscription: participant.Subscription, id: id, action: action, answer: done})
		default:
			t.queue.push(&endItem{topic: t, id: id, action: action, answer: done})
		}
	})
}
