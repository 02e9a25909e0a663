package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/participant/embedded"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
)

// process is one process with a coordinator, with topics, or with both, as package server joins them.
type process struct {
	name    string
	client  *etcdmodel.Client
	ctx     context.Context // ends when it is killed
	cancel  context.CancelFunc
	started chan struct{} // closed when it is up, or was killed before

	// Set before started is closed; nil: it has none.
	cluster *cluster.Cluster
	leader  *etcdleader.Leader
	group   *coordinator.Group
	topics  *topic.Topics

	mu    sync.Mutex // guards the following
	up    bool       // it can be reached
	calls []*call    // that it has not answered
}

func newProcess(model *etcdmodel.Model, name string, gate etcdmodel.Gate) *process {
	ctx, cancel := context.WithCancel(context.Background())
	return &process{name: name, client: model.Client(name, gate), ctx: ctx, cancel: cancel, started: make(chan struct{})}
}

// start starts a process in a goroutine of its own, because that waits for the store. It reports what a killed process does not.
func (p *process) start(run func() error, failed func(error)) {
	go func() {
		defer close(p.started)
		if err := run(); err != nil {
			if !errors.Is(err, errDead) && p.ctx.Err() == nil {
				failed(fmt.Errorf("start %s: %w", p.name, err))
			}
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.up = p.ctx.Err() == nil
	}()
}

// call is something asked of a process, which is answered once: by the process, or by its death.
type call struct {
	answered bool // guarded by process.mu
	lost     func()
}

// begin notes a call. lost is called if the process dies first, or is not up. The caller claims the call before it takes the
// answer of the process.
func (p *process) begin(lost func()) *call {
	p.mu.Lock()
	c := &call{lost: lost}
	up := p.up
	if up {
		p.calls = append(p.calls, c)
	}
	p.mu.Unlock()
	if !up {
		lost()
		return nil
	}
	return c
}

// claim reports whether the call is still to be answered.
func (p *process) claim(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.answered {
		return false
	}
	c.answered = true
	p.calls = slices.DeleteFunc(p.calls, func(one *call) bool { return one == c })
	return true
}

// reach asks a process. answer is called once, from any goroutine.
func reach[T any](p *process, ask func(answer func(T, error)), answer func(T, error)) {
	var none T
	c := p.begin(func() { answer(none, errDead) })
	if c == nil {
		return
	}
	ask(func(result T, err error) {
		if p.claim(c) {
			answer(result, err)
		}
	})
}

// die fails every call. What the process does afterwards, nobody sees.
func (p *process) die() {
	p.cancel()
	p.mu.Lock()
	p.up = false
	calls := p.calls
	for _, c := range calls {
		c.answered = true
	}
	p.calls = nil
	p.mu.Unlock()
	for _, c := range calls {
		c.lost()
	}
}

// stop returns when nothing of the process runs any more. The store hears nothing of it if the gate says that it is dead.
func (p *process) stop() error {
	<-p.started
	if p.group != nil {
		p.group.Close()
		p.leader.Close()
	}
	if p.topics != nil {
		p.topics.Close(p.ctx)
	}
	if p.cluster != nil {
		if err := p.cluster.Close(p.ctx); err == nil {
			return fmt.Errorf("%s, which is dead, ended its session", p.name)
		}
	}
	return p.client.Close()
}

const (
	// lease is that of leaders and sessions: the shortest, so that a successor has little to wait for.
	lease = 2 * time.Second
	// retention is for how long outcomes are kept.
	retention = 72 * time.Hour
)

var space = keyspace.New("pulsar-tc", "crashpoint")

// startTopics gives a process topics, which it owns under the lease of a session if it has joined a cluster. coordinators finds
// the process with the coordinator.
func (p *process) startTopics(coordinators func() *process) {
	options := topic.Options{
		KV: p.client, Keys: space, Registrar: registrar{coordinators}, Log: zerolog.Nop(),
		AllowAutoTopicCreation: true, AllowAutoSubscriptionCreation: true,
	}
	if p.cluster != nil {
		options.Instance, options.Watcher = cluster.Member{Cluster: p.cluster}, p.client
	}
	p.topics = topic.New(options)
}

// join makes a process one of several on the store.
func (p *process) join() error {
	joined, err := cluster.Join(p.ctx, cluster.Options{
		Client: p.client, Keys: space, Self: cluster.Instance{ID: p.name}, Lease: lease, Log: zerolog.Nop(),
	})
	p.cluster = joined
	return err
}

// startCoordinator gives a process a coordinator, which knows topics by participants.
func (p *process) startCoordinator(participants coordinator.Participants, exclusive bool) error {
	leader, err := etcdleader.New(p.client, space, etcdleader.Options{Lease: lease, Exclusive: exclusive}, zerolog.Nop())
	if err != nil {
		return fmt.Errorf("start the coordinator of %s: %w", p.name, err)
	}
	options := coordinator.DefaultOptions()
	options.Machine = fsm.Options{MaxTTLMillis: 604_800_000, Preserver: preserver.Options{
		Count: 1000, UnnamedCount: 10_000, Retention: retention.Milliseconds(), MinTime: 120_000, Max: 1_000_000,
	}}
	openLog := func(tc uint64, term coordinator.Term) coordinator.Log {
		return etcdlog.New(p.client, space, tc, term.Number(), etcdlog.Options{})
	}
	one := coordinator.New(0, options, terms{leader}, openLog, participants, zerolog.Nop())
	p.leader, p.group = leader, coordinator.NewGroup([]*coordinator.Coordinator{one}, options)
	p.group.Start(context.Background())
	return nil
}

// terms shows an etcdleader.Leader as a coordinator.Leader.
type terms struct{ *etcdleader.Leader }

func (t terms) Win(ctx context.Context, tc uint64) (coordinator.Term, error) {
	term, err := t.Leader.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	return term, nil
}

// registrar has topics register themselves with the process that has the coordinator.
type registrar struct{ coordinators func() *process }

func (r registrar) Count() uint64 { return 1 }

func (r registrar) AddParticipants(_ context.Context, id txn.ID, _ cnx.Caller, participants []txn.Participant, done func(error)) {
	p := r.coordinators()
	reach(p, func(answer func(struct{}, error)) {
		p.group.AddParticipants(context.Background(), id, fsm.Caller{}, participants, func(err error) { answer(struct{}{}, err) })
	}, func(_ struct{}, err error) { done(unknown(err)) })
}

// elsewhere are participants in another process.
type elsewhere struct{ topics func() *process }

func (e elsewhere) End(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	p := e.topics()
	ended := embedded.New(endOn{p})
	ended.End(ctx, id, participant, action, lowWaterMark, done)
}

// Settle settles nothing: the topics are not here.
func (elsewhere) Settle(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) { return nil, nil }

// endOn ends transactions on the topics of another process.
type endOn struct{ *process }

func (e endOn) EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	reach(e.process, func(answer func(struct{}, error)) {
		e.topics.EndTxn(context.WithoutCancel(ctx), id, participant, action, lowWaterMark, func(err error) { answer(struct{}{}, err) })
	}, func(_ struct{}, err error) { done(err) })
}

func (endOn) Settle(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) { return nil, nil }

// unknown makes of a lost answer what a connection makes of it: nothing is known.
func unknown(err error) error {
	if err == errDead {
		return fmt.Errorf("%w: %v", txn.ErrCoordinatorNotFound, err)
	}
	return err
}

func (p *process) list(ctx context.Context) ([]txn.ID, error) {
	found, err := p.group.List(ctx, nil, 0)
	var ids []txn.ID
	for i := range found {
		ids = append(ids, found[i].ID)
	}
	return ids, err
}
