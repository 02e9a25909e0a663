package coordinator_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/leader/memleader"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one coordinator over a log in memory, in a bubble whose clock the test moves.
type rig struct {
	t            testing.TB
	opts         coordinator.Options
	logOptions   memlog.Options
	wrapLog      func(coordinator.Log) coordinator.Log // nil: none
	store        *memlog.Store
	election     *memleader.Election
	participants *participants
	contender    *memleader.Contender
	group        *coordinator.Group

	mu         sync.Mutex // guards the following
	deaf       bool       // terms do not hear that their lease is gone
	winning    func()     // called before a term is won
	holdLoad   chan struct{}
	appends    int
	proofs     int
	termsEnded []error
	failed     int // loads
}

// newRig returns a rig that start sets going.
func newRig(t testing.TB) *rig {
	r := &rig{t: t, opts: coordinator.DefaultOptions(), store: memlog.NewStore(), election: memleader.NewElection()}
	r.participants = &participants{answers: map[string]func(call) error{}}
	r.opts.Machine = fsm.Options{MaxTTLMillis: 604_800_000, Preserver: preserver.Options{
		Count: 1000, UnnamedCount: 10_000, Retention: 259_200_000, MinTime: 120_000, Max: 1_000_000,
	}}
	r.opts.Events = coordinator.Events{
		TermEnded: func(_ uint64, _ int64, cause error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.termsEnded = append(r.termsEnded, cause)
		},
		LoadFailed: func(uint64, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed++
		},
	}
	return r
}

// inBubble runs a test with a started rig. configure may be nil.
func inBubble(t *testing.T, configure func(*rig), test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if configure != nil {
			configure(r)
		}
		r.start()
		t.Cleanup(func() { r.group.Close() })
		test(t, r)
	})
}

// start runs a process with one coordinator on the rig's store.
func (r *rig) start() {
	r.contender = r.election.Contender()
	c := coordinator.New(0, r.opts, contender{r, r.contender}, r.openLog, r.participants, zerolog.New(io.Discard))
	r.group = coordinator.NewGroup([]*coordinator.Coordinator{c}, r.opts)
	r.group.Start(context.Background())
}

// restart ends the process and begins another one.
func (r *rig) restart() {
	r.group.Close()
	r.start()
	synctest.Wait()
}

func (r *rig) openLog(tc uint64, term coordinator.Term) coordinator.Log {
	log := coordinator.Log(&countingLog{Log: memlog.New(r.store, tc, term.(termOf).Holds, r.logOptions), rig: r})
	if r.wrapLog != nil {
		log = r.wrapLog(log)
	}
	return log
}

// contender hands out terms of a contender, deaf ones if the rig says so.
type contender struct {
	rig *rig
	*memleader.Contender
}

func (c contender) Win(ctx context.Context, tc uint64) (coordinator.Term, error) {
	c.rig.mu.Lock()
	winning := c.rig.winning
	c.rig.mu.Unlock()
	if winning != nil {
		winning()
	}
	term, err := c.Contender.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	return termOf{c.rig, term}, nil
}

type termOf struct {
	rig *rig
	*memleader.Term
}

func (t termOf) Lost() <-chan struct{} {
	t.rig.mu.Lock()
	defer t.rig.mu.Unlock()
	if t.rig.deaf {
		return nil
	}
	return t.Term.Lost()
}

// countingLog counts what reaches the log.
type countingLog struct {
	coordinator.Log
	rig *rig
}

func (l *countingLog) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	l.rig.mu.Lock()
	hold := l.rig.holdLoad
	l.rig.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return l.Log.Load(ctx, visit)
}

func (l *countingLog) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	l.rig.mu.Lock()
	l.rig.appends++
	l.rig.mu.Unlock()
	at, err := l.Log.Append(ctx, batch)
	if ctx.Err() != nil {
		return txn.Appended{}, txn.ErrUnknownResult
	}
	return at, err
}

func (l *countingLog) Prove(ctx context.Context) error {
	l.rig.mu.Lock()
	l.rig.proofs++
	l.rig.mu.Unlock()
	return l.Log.Prove(ctx)
}

// counted returns how many appends and proofs there were since the last call.
func (r *rig) counted() (appends, proofs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	appends, proofs = r.appends, r.proofs
	r.appends, r.proofs = 0, 0
	return appends, proofs
}

// answer is what a request gets; it must get it once.
type answer struct {
	t     testing.TB
	mu    sync.Mutex
	given int
	id    txn.ID
	err   error
	at    time.Time
}

func (a *answer) give(id txn.ID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given++
	a.id, a.err, a.at = id, err, time.Now()
	if a.given > 1 {
		a.t.Errorf("a request is answered %d times, now with %v (TC-5)", a.given, err)
	}
}

// waits reports whether there is no answer when nothing can happen any more without time passing.
func (a *answer) waits() bool {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given == 0
}

// want fails unless the answer is there and is target; nil is success.
func (a *answer) want(what string, target error) {
	a.t.Helper()
	if a.waits() {
		a.t.Fatalf("%s: no answer, want %v", what, target)
	}
	if !errors.Is(a.err, target) {
		a.t.Fatalf("%s: %v, want %v", what, a.err, target)
	}
}

// wantStatus fails unless the answer says that the transaction is in state got (21).
func (a *answer) wantStatus(what string, got txn.Status) {
	a.t.Helper()
	var status *txn.StatusError
	if a.waits() || !errors.As(a.err, &status) || status.Got != got {
		a.t.Fatalf("%s: %v, want 21 with %s", what, a.err, got)
	}
}

// wantNotFound fails unless the answer is 24.
func (a *answer) wantNotFound(what string) {
	a.t.Helper()
	var notFound *txn.NotFoundError
	if a.waits() || !errors.As(a.err, &notFound) {
		a.t.Fatalf("%s: %v, want 24", what, a.err)
	}
}

func (r *rig) askNew(ttl time.Duration) *answer { return r.askNewBy(context.Background(), ttl) }

// askNewBy asks on the connection of ctx.
func (r *rig) askNewBy(ctx context.Context, ttl time.Duration) *answer {
	a := &answer{t: r.t}
	r.group.NewTxn(ctx, 0, txn.Owner{}, uint64(ttl.Milliseconds()), "", false, a.give)
	return a
}

func (r *rig) askAdd(id txn.ID, names ...string) *answer {
	return r.askAddBy(context.Background(), id, names...)
}

func (r *rig) askAddBy(ctx context.Context, id txn.ID, names ...string) *answer {
	a := &answer{t: r.t}
	r.group.AddParticipants(ctx, id, fsm.Caller{}, topics(names...), func(err error) { a.give(id, err) })
	return a
}

func (r *rig) askEnd(id txn.ID, action txn.Action) *answer {
	return r.askEndBy(context.Background(), id, action)
}

func (r *rig) askEndBy(ctx context.Context, id txn.ID, action txn.Action) *answer {
	a := &answer{t: r.t}
	r.group.EndTxn(ctx, id, fsm.Caller{}, action, false, func(err error) { a.give(id, err) })
	return a
}

func (r *rig) askConnect(ctx context.Context, ended func(handedOver bool)) *answer {
	a := &answer{t: r.t}
	r.group.Connect(ctx, 0, ended, func(err error) { a.give(txn.ID{}, err) })
	return a
}

// open opens a transaction with participants.
func (r *rig) open(ttl time.Duration, names ...string) txn.ID {
	r.t.Helper()
	a := r.askNew(ttl)
	a.want("NEW", nil)
	if len(names) > 0 {
		r.askAdd(a.id, names...).want("ADD", nil)
	}
	return a.id
}

func topics(names ...string) []txn.Participant {
	all := make([]txn.Participant, len(names))
	for i, name := range names {
		all[i] = txn.Participant{Topic: "persistent://tenant/namespace/" + name}
	}
	return all
}

// call is one END_TXN that a participant got.
type call struct {
	id           txn.ID
	participant  txn.Participant
	action       txn.Action
	lowWaterMark uint64
	at           time.Time
	attempt      int // from 1, of this participant and transaction
}

// participants answer by topic name; one without an answer function succeeds at once.
type participants struct {
	mu       sync.Mutex // guards the following
	answers  map[string]func(call) error
	calls    []call
	inFlight int
	most     int // in flight at once
	inline   bool
	settle   func(txn.ID, []txn.Participant) (*txn.Settlement, func(error))
}

// errHang lets a call wait until the term ends.
var errHang = errors.New("hang")

func (p *participants) End(ctx context.Context, id txn.ID, at txn.Participant, action txn.Action, mark uint64, done func(error)) {
	p.mu.Lock()
	c := call{id: id, participant: at, action: action, lowWaterMark: mark, at: time.Now(), attempt: 1}
	for i := range p.calls {
		if p.calls[i].id == id && p.calls[i].participant == at {
			c.attempt++
		}
	}
	p.calls = append(p.calls, c)
	p.inFlight++
	p.most = max(p.most, p.inFlight)
	answer, inline := p.answers[at.Topic[len("persistent://tenant/namespace/"):]], p.inline
	p.mu.Unlock()
	if inline {
		p.finish(ctx, c, answer, done)
		return
	}
	go p.finish(ctx, c, answer, done)
}

// Settle prepares commits if settle is set.
func (p *participants) Settle(id txn.ID, all []txn.Participant) (*txn.Settlement, func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settle == nil {
		return nil, nil
	}
	return p.settle(id, all)
}

func (p *participants) finish(ctx context.Context, c call, answer func(call) error, done func(error)) {
	var err error
	if answer != nil {
		err = answer(c)
	}
	if errors.Is(err, errHang) {
		<-ctx.Done()
		err = ctx.Err()
	}
	p.mu.Lock()
	p.inFlight--
	p.mu.Unlock()
	done(err)
}

// answer sets how a topic answers from now on.
func (p *participants) answer(name string, f func(call) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[name] = f
}

// of returns the calls that a topic got.
func (p *participants) of(name string) []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(c call) bool { return c.participant != topics(name)[0] })
}

// fails makes a topic fail n times with err before it succeeds.
func fails(n int, err error) func(call) error {
	return func(c call) error {
		if c.attempt <= n {
			return err
		}
		return nil
	}
}

func hangs(call) error { return errHang }
