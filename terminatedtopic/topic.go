package terminatedtopic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// topic is the topic of one coordinator.
type topic struct {
	tc            uint64
	ctx           context.Context // ends with Close
	tasks         *sync.WaitGroup
	outcomes      Outcomes
	maxValueBytes int

	mu            sync.Mutex // guards the following
	closed        bool
	empty         tombstones
	reading       *reading // nil: nobody reads
	subscriptions map[string]*subscription
	uses          uint64 // counts attachments, so that the longest unused cursor is found
}

// reading is what exists while anybody reads in one term of the coordinator.
type reading struct {
	ctx    context.Context
	cancel context.CancelFunc
	users  int           // consumers, and those that wait for ready
	ready  chan struct{} // closed when the view is whole, or err is set
	err    error
	view   *view
	fetch  chan struct{} // holds a token while a message is being made
	made   made          // guarded by the token
}

// made is the message that was made last: readers that follow the topic ask for the same.
type made struct {
	name    string
	place   uint64
	payload []byte
}

func newTopic(ctx context.Context, tasks *sync.WaitGroup, outcomes Outcomes, tc uint64, maxValueBytes int) *topic {
	return &topic{
		tc: tc, ctx: ctx, tasks: tasks, outcomes: outcomes, maxValueBytes: maxValueBytes,
		subscriptions: map[string]*subscription{},
	}
}

// changed takes a change of the coordinator's outcomes.
func (t *topic) changed(c coordinator.OutcomeChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.Emptied {
		t.empty.drop(c.Key)
	} else if gone, is := t.empty.add(c.Key, c.Place, c.Millis); is && t.reading != nil {
		t.reading.view.forget(gone.key, gone.place)
	}
	if t.reading == nil {
		return
	}
	t.reading.view.note(c.Key, c.Place, c.Millis, c.Emptied)
	for _, s := range t.subscriptions {
		s.wake()
	}
}

// enter returns what everybody reads, when it is ready. leave must be called.
func (t *topic) enter(ctx context.Context) (*reading, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, fmt.Errorf("%w: the server is closing", txn.ErrNotReady)
	}
	r := t.reading
	if r == nil {
		r = t.begin()
	}
	r.users++
	t.mu.Unlock()
	select {
	case <-r.ready:
		if r.err == nil {
			return r, nil
		}
		t.leave(r)
		return nil, r.err
	case <-ctx.Done():
		t.leave(r)
		return nil, context.Cause(ctx)
	}
}

// begin starts to read. mu is held.
func (t *topic) begin() *reading {
	r := &reading{ready: make(chan struct{}), view: newView(), fetch: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(t.ctx)
	for _, s := range t.empty.valid() {
		r.view.note(s.key, s.place, s.millis, true)
	}
	t.reading = r
	t.tasks.Go(func() {
		err := t.load(r)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err != nil {
			r.err = fmt.Errorf("%w: read the outcomes of coordinator %d: %v", txn.ErrNotReady, t.tc, err)
			t.drop(r)
		} else {
			r.view.sort()
		}
		close(r.ready)
	})
	return r
}

// load reads all names into the view of r, while changes come into it as well.
func (t *topic) load(r *reading) error {
	served := make(chan error, 1)
	t.outcomes.Connect(r.ctx, t.tc, func(bool) { t.over(r) }, func(err error) { served <- err })
	if err := <-served; err != nil {
		return err
	}
	for from := 0; from >= 0; {
		names, next, err := t.outcomes.ClientNames(r.ctx, t.tc, from)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for _, n := range names {
			r.view.note(n.Key, n.Place, n.Ended, false)
		}
		t.mu.Unlock()
		from = next
	}
	return r.ctx.Err()
}

// leave ends one use of r.
func (t *topic) leave(r *reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.users--; r.users == 0 {
		t.drop(r)
	}
}

// drop ends r. mu is held.
func (t *topic) drop(r *reading) {
	r.cancel()
	if t.reading == r {
		t.reading = nil
	}
}

// over disconnects everybody who reads r: the coordinator's term has ended, and what it showed is shown by the next one.
func (t *topic) over(r *reading) {
	t.mu.Lock()
	t.drop(r)
	var gone []*consumer
	for _, s := range t.subscriptions {
		gone = append(gone, s.disconnect(r)...)
	}
	t.mu.Unlock()
	for _, c := range gone {
		c.client.Disconnect()
	}
}

// close disconnects everybody and lets nobody in.
func (t *topic) close() {
	t.mu.Lock()
	t.closed = true
	r := t.reading
	t.mu.Unlock()
	if r != nil {
		t.over(r)
	}
}

// message returns the message of n, as it is when the coordinator is asked, with the id that it has for the reader.
func (t *topic) message(ctx context.Context, r *reading, n *name, place uint64, millis int64, owners []owned) ([]byte, error) {
	select {
	case r.fetch <- struct{}{}:
		defer func() { <-r.fetch }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.made.name == n.text && r.made.place == place {
		return r.made.payload, nil
	}
	var parts []shownOf
	for _, o := range owners {
		if o.empty {
			continue
		}
		shown, err := t.outcomes.ClientOutcomes(ctx, t.tc, o.key, max(t.maxValueBytes/leastOutcomeBytes, 1))
		if err != nil {
			return nil, err
		}
		parts = append(parts, shownOf{o.key.Owner.Role, shown})
	}
	text, err := value(t.tc, n.text, parts, t.maxValueBytes)
	if err != nil {
		return nil, err
	}
	made, err := payload(n.text, place, millis, text)
	if err != nil {
		return nil, err
	}
	r.made.name, r.made.place, r.made.payload = n.text, place, made
	return made, nil
}

// inTheWay returns the Exclusive consumer that keeps out another one; nil: there is none.
func (t *topic) inTheWay(cmd *pulsarproto.CommandSubscribe) *consumer {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.subscriptions[cmd.GetSubscription()]
	if s == nil || len(s.consumers) == 0 || s.kind != pulsarproto.CommandSubscribe_Exclusive || cmd.GetSubType() != s.kind {
		return nil
	}
	return s.consumers[0]
}

// subscribe attaches a consumer. An Exclusive one whose connection is dead makes room for it.
func (t *topic) subscribe(ctx context.Context, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	r, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.attach(r, cmd, client)
	if old := t.inTheWay(cmd); errors.Is(err, errConsumerBusy) && old != nil && !old.client.Alive(ctx) {
		old.Close()
		c, err = t.attach(r, cmd, client)
	}
	if err != nil {
		t.leave(r)
		return nil, err
	}
	return c, nil
}
