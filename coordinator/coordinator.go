package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Coordinator is one transaction coordinator. Run it in a goroutine; everything else may be called from anywhere.
type Coordinator struct {
	tc           uint64
	opts         Options
	leader       Leader
	openLog      func(tc uint64, term Term) Log
	participants Participants
	log          zerolog.Logger
	now          func() time.Time
	mail         *mailbox

	leads atomic.Bool // a term was won and is not given up
	aside atomic.Bool // others are left to lead
	moved atomic.Bool // handed over: requests of registered connections are relayed

	mu         sync.Mutex // guards the following
	space      fsm.SpaceLevel
	serving    bool
	began      chan struct{}                             // closed while a term is served
	registered map[context.Context]func(handedOver bool) // by connection: with this term, or with the one handed over
	status     Status
	over       bool // Run ends

	stop  chan struct{}  // closed when Run ends
	tasks sync.WaitGroup // connects that wait, and participant calls of all terms
}

// Status is a coordinator's state for health, metrics and operators.
type Status struct {
	TC           uint64
	Serving      bool
	Expected     bool   // this process leads it or is to
	LoadError    string // why it does not serve, if it tried
	Term         int64
	Live         int
	Outcomes     int
	Names        int
	LastIssued   uint64
	LowWaterMark uint64
	LogBytes     int64
	LogLiveBytes int64
	Recovered    time.Time // when the load of this term ended
	LoadTook     time.Duration
}

// Reason is why it does not serve; empty: it does.
func (s *Status) Reason() string {
	if s.Serving {
		return ""
	}
	return cmp.Or(s.LoadError, "loading")
}

// New returns a coordinator that does nothing until Run.
func New(tc uint64, opts Options, leader Leader, openLog func(uint64, Term) Log, participants Participants, log zerolog.Logger) *Coordinator {
	opts.Machine.TC = tc
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	return &Coordinator{
		tc: tc, opts: opts, leader: leader, openLog: openLog, participants: participants,
		log: log.With().Uint64("tc", tc).Logger(), now: now, mail: newMailbox(),
		began: make(chan struct{}), registered: map[context.Context]func(bool){}, status: Status{TC: tc}, stop: make(chan struct{}),
	}
}

// Run wins terms and serves them until ctx is done, then answers what waits and resigns. Nothing that it started runs on.
func (c *Coordinator) Run(ctx context.Context) {
	expiry := c.expireWaiting(ctx)
	patience := newPatience(&c.opts)
	for ctx.Err() == nil {
		tried := c.term(ctx)
		if ctx.Err() != nil {
			break
		}
		pause, aside := patience.after(c.now(), tried)
		if aside {
			c.log.Error().Dur("after_ms", c.opts.GiveUp).Dur("for_ms", pause).Msg("no term of this process lasts, the coordinator is left to others for a while")
		}
		c.aside.Store(aside)
		wait(ctx, pause)
		c.aside.Store(false)
	}
	refuse(c.mail.close(), txn.ErrCoordinatorNotFound)
	<-expiry
	c.mu.Lock()
	c.over = true
	close(c.stop)
	c.mu.Unlock()
	c.tasks.Wait()
}

// background runs f beside the coordinator's goroutine unless Run has ended.
func (c *Coordinator) background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.tasks.Go(f)
	}
	return !c.over
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// placeWait is how long requests wait at least where another process is to lead: who sent them here may know better, because it
// has just handed over.
const placeWait = time.Second

// expireWaiting answers requests that have waited LoadWait for a term, or placeWait where none is to come, until ctx is done.
func (c *Coordinator) expireWaiting(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(c.opts.LoadWait/20, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch {
			case !c.expected():
				refuse(c.mail.expired(c.now().Add(-placeWait)), errMoved)
			case !c.isServing():
				refuse(c.mail.expired(c.now().Add(-c.loadWait())), txn.ErrCoordinatorNotFound)
			}
		}
	}()
	return done
}

// noRoomWait is how long a request waits for a term while the store takes nothing: none can begin then.
const noRoomWait = time.Second

func (c *Coordinator) loadWait() time.Duration {
	if c.currentSpace() == fsm.SpaceRefuseEnd {
		return min(noRoomWait, c.opts.LoadWait)
	}
	return c.opts.LoadWait
}

// refuse answers letters that no machine will see.
func refuse(letters []letter, err error) {
	for _, l := range letters {
		if l.answer != nil {
			l.answer(nil, err)
		}
	}
}

// term wins, loads and serves one term.
func (c *Coordinator) term(ctx context.Context) (tried try) {
	asked := c.now()
	defer func() { tried.took = c.now().Sub(asked) }()
	term, err := c.leader.Win(ctx, c.tc)
	tried.waited = c.now().Sub(asked)
	if err != nil {
		c.failedLoad(ctx, fmt.Errorf("win the term: %w", err))
		tried.served = -1
		return tried
	}
	defer c.resign(term)
	c.leads.Store(true)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errTermOver)
	s, err := c.load(ctx, term)
	if err != nil {
		c.failedLoad(ctx, fmt.Errorf("load the log: %w", err))
		return tried
	}
	began := c.now()
	err = s.serve(ctx)
	tried.served, tried.handedOver = max(0, c.now().Sub(began)), errors.Is(err, errMoved)
	cancel(err)
	s.close()
	c.endTerm(err)
	return tried
}

var errTermOver = errors.New("term over")

// expected reports whether this process leads the coordinator or is to.
func (c *Coordinator) expected() bool {
	return c.leads.Load() || !c.aside.Load() && c.leader.Expected(c.tc)
}

// resign deletes this term's leader key, whatever ended the term. It must not outlive the process for long.
func (c *Coordinator) resign(term Term) {
	c.leads.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := term.Resign(ctx); err != nil {
		c.log.Warn().Err(err).Int64("term", term.Number()).Msg("could not delete the leader key, its lease will")
	}
}

func (c *Coordinator) failedLoad(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.status.LoadError = err.Error()
	c.mu.Unlock()
	if c.opts.Events.LoadFailed != nil {
		c.opts.Events.LoadFailed(c.tc, err)
	}
}

// beginTerm makes the coordinator visible to commands.
func (c *Coordinator) beginTerm(status Status) {
	c.mu.Lock()
	c.serving = true
	c.moved.Store(false)
	c.status = status
	close(c.began)
	c.mu.Unlock()
	if c.opts.Events.TermBegan != nil {
		c.opts.Events.TermBegan(c.tc, status.Term, status.Live, status.Outcomes, status.LoadTook)
	}
}

// endTerm tells the connections that registered (TC-24), so that their clients look up again. Those of a term that was handed over
// stay registered.
func (c *Coordinator) endTerm(cause error) {
	c.mu.Lock()
	was := c.serving
	c.serving = false
	c.status.Serving = false
	if was {
		c.began = make(chan struct{})
	}
	term, moved, told := c.status.Term, c.moved.Load(), maps.Clone(c.registered)
	if !moved {
		clear(c.registered)
	}
	if len(told) == 0 {
		c.moved.Store(false)
	}
	c.mu.Unlock()
	for _, ended := range told {
		ended(moved)
	}
	if was && c.opts.Events.TermEnded != nil {
		c.opts.Events.TermEnded(c.tc, term, cause)
	}
}

// termBegan is closed while a term is served.
func (c *Coordinator) termBegan() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began
}

func (c *Coordinator) isServing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serving
}

// Status returns a copy of the coordinator's state. Of one that another process is to lead nothing is known here.
func (c *Coordinator) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.serving && !c.expected() {
		return Status{TC: c.tc}
	}
	status := c.status
	status.Expected = true
	return status
}

func (c *Coordinator) publish(m *fsm.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.status
	s.Live, s.Outcomes, s.Names = m.Live(), m.Outcomes().Len(), m.Outcomes().Names()
	s.LastIssued, s.LowWaterMark = m.Issued(), m.LowWaterMark()
	s.LogBytes, s.LogLiveBytes = m.LogCost(), m.LiveCost()
}

// SetSpace tells the coordinator how much room the store has, now and for later terms.
func (c *Coordinator) SetSpace(level fsm.SpaceLevel) {
	c.mu.Lock()
	changed := c.space != level
	c.space = level
	c.mu.Unlock()
	if changed && c.leads.Load() {
		c.mail.tell(&fsm.Space{Level: level})
	}
}

func (c *Coordinator) currentSpace() fsm.SpaceLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.space
}

// submit queues a command whose answer somebody waits for; ctx is that of its connection. A coordinator that was handed over
// relays it if its connection had registered, and else refuses it.
func (c *Coordinator) submit(ctx context.Context, cmd fsm.Command, answer answerFunc) {
	if c.opts.Relay != nil {
		answer = c.orRelay(ctx, cmd, answer)
	}
	if c.handedOver() {
		answer(nil, errMoved)
		return
	}
	if err := c.mail.put(letter{cmd: cmd, answer: answer, since: c.now()}); err != nil {
		answer(nil, err)
		return
	}
	if c.handedOver() { // meanwhile, and nobody may look into the mailbox any more; a next term may have begun to use it, though
		refuse(c.mail.asked(), errMoved)
	}
}
