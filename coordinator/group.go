package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Group is all coordinators that this process may lead. Its methods are what a connection, a topic and an operator ask.
type Group struct {
	all  atomic.Pointer[[]*Coordinator] // never nil
	opts Options
	wg   sync.WaitGroup

	mu   sync.Mutex         // guards the following, and who replaces all
	run  context.Context    // nil: not started
	stop context.CancelFunc // of run
}

// NewGroup returns a group of coordinators; the place of each is its number. Start runs them.
func NewGroup(all []*Coordinator, opts Options) *Group {
	g := &Group{opts: opts}
	g.all.Store(&all)
	return g
}

// Start runs every coordinator until Close or until ctx is done. They load and drive by themselves, without waiting for a
// client (TC-22).
func (g *Group) Start(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run, g.stop = context.WithCancel(ctx)
	for _, c := range g.coordinators() {
		g.wg.Go(func() { c.Run(g.run) })
	}
}

// Grow adds coordinators, numbered on from those that there are, and runs them. After Close it does nothing.
func (g *Group) Grow(more []*Coordinator) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.run == nil || g.run.Err() != nil {
		return
	}
	all := slices.Concat(g.coordinators(), more)
	g.all.Store(&all)
	for _, c := range more {
		g.wg.Go(func() { c.Run(g.run) })
	}
}

// Close ends all terms and returns when nothing of the group runs any more. What waits gets ErrCoordinatorNotFound (P-30).
func (g *Group) Close() {
	g.mu.Lock()
	if g.stop != nil {
		g.stop()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

func (g *Group) coordinators() []*Coordinator { return *g.all.Load() }

// handOverInterval is the time between two looks whether everything is handed over. It does not divide idleInterval: which of two
// that look at one moment is first is chance, and a simulation must not rest on that.
const handOverInterval = 17 * time.Millisecond

// HandOver returns when this process leads no coordinator any more and relays no requests, or when ctx is done. The leader must
// have been told that others are to lead.
func (g *Group) HandOver(ctx context.Context) {
	for _, c := range g.coordinators() {
		for c.busy() && ctx.Err() == nil {
			wait(ctx, handOverInterval)
		}
	}
}

// busy reports whether the coordinator is led here, or was and connections that registered are left.
func (c *Coordinator) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leads.Load() || c.serving || c.moved.Load() && len(c.registered) > 0
}

// Count is the number of coordinators.
func (g *Group) Count() uint64 { return uint64(len(g.coordinators())) }

// Statuses returns the state of every coordinator, by number.
func (g *Group) Statuses() []Status {
	var all []Status
	for _, c := range g.coordinators() {
		all = append(all, c.Status())
	}
	return all
}

// SetSpace tells every coordinator how much room the store has.
func (g *Group) SetSpace(level fsm.SpaceLevel) {
	for _, c := range g.coordinators() {
		c.SetSpace(level)
	}
}

func (g *Group) find(tc uint64) (*Coordinator, error) {
	all := g.coordinators()
	if tc >= uint64(len(all)) {
		return nil, fmt.Errorf("%w: there are %d, numbered from 0, and no %d", txn.ErrCoordinatorNotFound, len(all), tc)
	}
	return all[tc], nil
}

// Expected reports whether this process leads coordinator tc or is to: another one is asked in vain.
func (g *Group) Expected(tc uint64) bool {
	c, err := g.find(tc)
	return err == nil && c.expected()
}

// NewTxn opens a transaction; done gets its id. ctx is that of the connection, here and in the other commands.
func (g *Group) NewTxn(ctx context.Context, tc uint64, owner txn.Owner, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error)) {
	c, err := g.find(tc)
	if err != nil {
		done(txn.ID{Most: tc}, err)
		return
	}
	cmd := &fsm.NewTxn{Owner: owner, TTLMillis: ttlMillis, ClientName: clientName, Named: named}
	c.submit(ctx, cmd, func(e *fsm.Effect, err error) {
		if err != nil {
			done(txn.ID{Most: tc}, err)
			return
		}
		done(e.ID, nil)
	})
}

// AddParticipants registers participants of one kind, all or none.
func (g *Group) AddParticipants(ctx context.Context, id txn.ID, caller fsm.Caller, participants []txn.Participant, done func(error)) {
	c, err := g.find(id.Most)
	if err != nil {
		done(err)
		return
	}
	cmd := &fsm.AddParticipants{Caller: caller, Least: id.Least, Participants: participants}
	c.submit(ctx, cmd, func(_ *fsm.Effect, err error) { done(err) })
}

// EndTxn decides a transaction, joins its end, or asks for its outcome. done gets nil when every participant has applied
// action and the outcome is durable.
func (g *Group) EndTxn(ctx context.Context, id txn.ID, caller fsm.Caller, action txn.Action, named bool, done func(error)) {
	c, err := g.find(id.Most)
	if err != nil {
		done(err)
		return
	}
	cmd := &fsm.EndTxn{Caller: caller, Least: id.Least, Action: action, Named: named}
	c.submit(ctx, cmd, g.bounded(done))
}

// bounded answers an END early if it waits longer than EndWait (TC-16).
func (g *Group) bounded(done func(error)) answerFunc {
	if g.opts.EndWait <= 0 {
		return func(_ *fsm.Effect, err error) { done(err) }
	}
	var answered atomic.Bool
	timer := time.AfterFunc(g.opts.EndWait, func() {
		if answered.CompareAndSwap(false, true) {
			done(fmt.Errorf("%w: the end takes longer than transactionEndWaitMs allows to wait for, ask again", txn.ErrNotReady))
		}
	})
	return func(_ *fsm.Effect, err error) {
		if answered.CompareAndSwap(false, true) {
			timer.Stop()
			done(err)
		}
	}
}

// Describe returns what is known of one transaction, live or ended. Errors: *txn.NotFoundError, txn.ErrCoordinatorNotFound if there is no
// such coordinator, txn.ErrNotReady with the reason if it does not answer.
func (g *Group) Describe(ctx context.Context, id txn.ID) (fsm.Description, error) {
	return g.describe(id, func(c *Coordinator, cmd fsm.Command) (fsm.Effect, error) { return c.look(ctx, cmd) })
}

// DescribeForClient is Describe for what a client has asked: a coordinator that does not answer is txn.ErrCoordinatorNotFound, so that the
// client asks another process.
func (g *Group) DescribeForClient(ctx context.Context, id txn.ID) (fsm.Description, error) {
	return g.describe(id, func(c *Coordinator, cmd fsm.Command) (fsm.Effect, error) { return c.ask(ctx, cmd) })
}

func (g *Group) describe(id txn.ID, ask func(*Coordinator, fsm.Command) (fsm.Effect, error)) (fsm.Description, error) {
	c, err := g.find(id.Most)
	if err != nil {
		return fsm.Description{}, err
	}
	answer, err := ask(c, &fsm.Describe{Least: id.Least})
	if err != nil {
		return fsm.Description{}, err
	}
	return answer.Descriptions[0], nil
}

// List returns live transactions of all coordinators that this process leads or is to lead, by id, at most limit (0: all). A
// coordinator that does not answer makes it fail: half a list would be read as a whole one. Errors: txn.ErrNotReady with the reason.
func (g *Group) List(ctx context.Context, filter func(*fsm.Description) bool, limit int) ([]fsm.Description, error) {
	var all []fsm.Description
	for _, c := range g.coordinators() {
		if !c.expected() {
			continue
		}
		listed, err := c.list(ctx, filter, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
	}
	return all, nil
}

// ListOf is List for one coordinator.
func (g *Group) ListOf(ctx context.Context, tc uint64, filter func(*fsm.Description) bool, limit int) ([]fsm.Description, error) {
	c, err := g.find(tc)
	if err != nil {
		return nil, err
	}
	return c.list(ctx, filter, limit)
}

func (c *Coordinator) list(ctx context.Context, filter func(*fsm.Description) bool, limit int) ([]fsm.Description, error) {
	answer, err := c.look(ctx, &fsm.List{Filter: filter, Limit: limit})
	return answer.Descriptions, err
}

// Resolve declares a participant of a decided transaction done, by the word of who.
func (g *Group) Resolve(ctx context.Context, id txn.ID, participant txn.Participant, who string) error {
	c, err := g.find(id.Most)
	if err != nil {
		return err
	}
	_, err = c.ask(ctx, &fsm.Resolve{Least: id.Least, Participant: participant, Who: who})
	return c.explain(err)
}

// lookWait is how long an operator who only looks waits for a coordinator: less than clients do, for the reason is worth more.
const lookWait = 5 * time.Second

// look asks for an operator what changes nothing.
func (c *Coordinator) look(ctx context.Context, cmd fsm.Command) (fsm.Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	answer, err := c.ask(ctx, cmd)
	return answer, c.explain(err)
}

// explain gives an operator the reason in place of what clients are told of a coordinator that does not answer.
func (c *Coordinator) explain(err error) error {
	if !errors.Is(err, txn.ErrCoordinatorNotFound) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	status := c.Status()
	reason := status.Reason()
	switch {
	case !status.Expected:
		reason = "another process is to lead it"
	case status.Serving:
		reason = "the store has not answered, or ended its term"
	}
	return fmt.Errorf("%w: coordinator %d does not answer: %s", txn.ErrNotReady, c.tc, reason)
}

// ask submits cmd and waits for its answer.
func (c *Coordinator) ask(ctx context.Context, cmd fsm.Command) (fsm.Effect, error) {
	type result struct {
		answer fsm.Effect
		err    error
	}
	answered := make(chan result, 1)
	c.submit(ctx, cmd, func(e *fsm.Effect, err error) {
		if err != nil {
			answered <- result{err: err}
			return
		}
		answered <- result{answer: *e}
	})
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-ctx.Done():
		return fsm.Effect{}, context.Cause(ctx)
	}
}
