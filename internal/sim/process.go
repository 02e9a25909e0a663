package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
)

const (
	// lease is short, so that it runs out while an instance is paused or cut off for some seconds.
	lease = 2 * time.Second
	// keptFor is how long an outcome must be known. Clocks jump by less.
	keptFor = 100 * time.Hour
)

// instance is one machine, on which processes run one after the other.
type instance struct {
	world  *world
	number int

	mu      sync.Mutex // guards the following
	starts  int
	ahead   time.Duration // its clock
	process *process      // the newest; it may be dead
}

// process is one run of the product on an instance.
type process struct {
	*instance
	name    string // unique, and its id in the cluster
	client  *etcdmodel.Client
	kv      clientv3.KV
	cluster *cluster.Cluster
	leader  *etcdleader.Leader
	group   *coordinator.Group
	topics  *topic.Topics
	ctx     context.Context // ends when the process is killed
	cancel  context.CancelFunc
	dead    chan struct{} // closed then
	serves  chan struct{} // closed when it takes requests
	links   links
	tasks   sync.WaitGroup // its start, and what connections began

	state     sync.Mutex // guards the following
	pausedTo  time.Time  // it stands still until then
	cutOffTo  time.Time  // it and the store do not reach each other until then
	cutOffAt  int64      // revision that the member on its side knows meanwhile
	heard     int64      // revision of the newest answer of the store
	isStopped bool       // it is on its way out, or dead
}

// start begins the next process of the instance.
func (i *instance) start() {
	w := i.world
	i.mu.Lock()
	i.starts++
	p := &process{
		instance: i, name: "i" + strconv.Itoa(i.number) + "." + strconv.Itoa(i.starts),
		dead: make(chan struct{}), serves: make(chan struct{}),
	}
	i.process = p
	i.mu.Unlock()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.client = w.store.Client(p.name, p.gate)
	p.kv = w.mutant.kv(p, pages{p.client, w.mix.page})
	p.tasks.Go(func() {
		if err := p.build(); err != nil {
			w.after(0, p.name+" cannot start", p.kill)
			return
		}
		p.group.Start(context.Background())
		close(p.serves)
	})
}

// build joins the parts of the process, as package server does.
func (p *process) build() error {
	w := p.world
	if err := p.joinCluster(); err != nil {
		return err
	}
	options := etcdleader.Options{Lease: lease, Exclusive: w.mix.alone, Instance: p.name}
	if !w.mix.alone {
		options.Placement = placement{p}
	}
	leader, err := etcdleader.New(storeClient{p.client, p.kv, p}, w.space, options, zerolog.Nop())
	if err != nil {
		return err
	}
	p.cluster.SetCoordinators(uint64(w.mix.coordinators))
	p.leader = leader
	p.topics = topic.New(p.topicOptions())
	p.group = p.newGroup()
	return nil
}

func (p *process) joinCluster() (err error) {
	self := cluster.Instance{ID: p.name, ServiceURL: "pulsar://" + p.name}
	if p.world.mix.alone {
		p.cluster = cluster.Alone(self)
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	p.cluster, err = cluster.Join(ctx, cluster.Options{
		Client: storeClient{p.client, p.kv, p}, Keys: p.world.space, Self: self, Lease: lease, Log: zerolog.Nop(), Now: p.now,
	})
	return err
}

// placement says who is to lead.
type placement struct{ *process }

// Place implements etcdleader.Placement.
func (p placement) Place(tc uint64) string {
	return p.cluster.PlaceCoordinator(tc).ID
}

// Changed implements etcdleader.Placement.
func (p placement) Changed() <-chan struct{} { return p.cluster.Changed() }

// Leaving implements etcdleader.Placement.
func (p placement) Leaving() bool { return p.cluster.Leaving() }

// storeClient sends reads and writes of keys through kv, which may be a mutant's.
type storeClient struct {
	*etcdmodel.Client
	kv      clientv3.KV
	process *process
}

// KeepAlive tells of the end of a lease some time after it, as a client does that looks now and then. A process that stands still
// hears of it when it wakes. Renewals are not told.
func (c storeClient) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	renewed, err := c.Client.KeepAlive(ctx, id)
	if err != nil {
		return nil, err
	}
	p, w := c.process, c.process.world
	told := make(chan *clientv3.LeaseKeepAliveResponse)
	p.tasks.Go(func() {
		defer close(told)
		for range renewed {
		}
		label := w.unique(p.name + " loses a lease")
		notices := time.Duration(w.chance.below(600, "notices", label)) * time.Millisecond
		if w.happens("lease lost unnoticed", label, w.mix.store.unnoticed) {
			notices += time.Duration(w.chance.below(11_000, "notices late", label)) * time.Millisecond
		}
		noticed := make(chan struct{})
		w.at(p.leaves(notices), label, func() { close(noticed) })
		select {
		case <-noticed:
		case <-ctx.Done():
		case <-p.dead:
		}
	})
	return told, nil
}

func (c storeClient) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return c.kv.Get(ctx, key, opts...)
}

func (c storeClient) Txn(ctx context.Context) clientv3.Txn { return c.kv.Txn(ctx) }

func (p *process) newGroup() *coordinator.Group {
	w := p.world
	options := coordinator.DefaultOptions()
	options.LoadWait = 3 * time.Second
	options.TooManyPause = 100 * time.Millisecond
	options.RetryCeiling = 2 * time.Second
	options.Now = p.now
	options.Relay = relay{p}
	options.Jitter = func(most time.Duration) time.Duration { return most / 2 }
	options.Machine = fsm.Options{
		MaxTTLMillis: 604_800_000, MaxActive: 1000, MaxParticipants: 100, MaxParticipantBytes: 1 << 18, MaxSnapshotBytes: 1 << 20,
		Preserver: preserver.Options{
			Count: w.mix.keptCount, UnnamedCount: 10 * w.mix.keptCount, Retention: keptFor.Milliseconds(), MinTime: 120_000, Max: 1_000_000, NamesPerOwner: 1000,
		},
	}
	options.Machine.LogSlack = w.mix.slack
	options.Events.LoadFailed = p.loadFailed
	w.mutant.coordinator(&options)
	openLog := func(tc uint64, term coordinator.Term) coordinator.Log {
		return w.mutant.log(p, tc, etcdlog.New(p.kv, w.space, tc, term.Number(), etcdlog.Options{MaxOps: w.mix.maxOps}))
	}
	leader, ends := w.mutant.leader(p, terms{p.leader}), w.mutant.participants(p, p.newParticipants())
	all := make([]*coordinator.Coordinator, w.mix.coordinators)
	for tc := range all {
		all[tc] = coordinator.New(uint64(tc), options, leader, openLog, ends, zerolog.Nop())
	}
	return coordinator.NewGroup(all, options)
}

func (p *process) topicOptions() topic.Options {
	options := topic.Options{
		KV: p.kv, Keys: p.world.space, Registrar: registrar{p}, Log: zerolog.Nop(), Now: p.now, MaxTxnOps: p.world.mix.maxOps,
		AllowAutoSubscriptionCreation: true, IdleUnload: p.world.mix.idle, Retention: 2 * keptFor,
	}
	if !p.world.mix.alone {
		options.Instance, options.Watcher = cluster.Member{Cluster: p.cluster}, p.client
	}
	p.world.mutant.topics(&options)
	return options
}

// loadFailed holds that nothing stored is ever reported as corrupt: an operator would have to see to it.
func (p *process) loadFailed(tc uint64, err error) {
	var corrupt *txn.CorruptError
	if errors.As(err, &corrupt) && !p.isDead() {
		p.world.fail("a log is reported as corrupt", fmt.Sprintf("coordinator %d by %s: %v", tc, p.name, err))
	}
}

// now is the clock of the instance.
func (i *instance) now() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().Add(i.ahead)
}

func (i *instance) current() *process {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.process
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// takesRequests reports whether the process has started and was not killed.
func (p *process) takesRequests() bool {
	select {
	case <-p.serves:
		return !p.isDead()
	default:
		return false
	}
}

// leaves is when something that is sent now, and under way for d, arrives: a paused process sends when it wakes.
func (p *process) leaves(d time.Duration) time.Time {
	now := time.Now()
	if until := p.pausedUntil(); until.After(now) {
		now = until
	}
	return now.Add(d)
}

func (p *process) pausedUntil() time.Time {
	p.state.Lock()
	defer p.state.Unlock()
	return p.pausedTo
}

// unreachedUntil is when process and store reach each other.
func (p *process) unreachedUntil() time.Time {
	p.state.Lock()
	defer p.state.Unlock()
	if p.cutOffTo.After(p.pausedTo) {
		return p.cutOffTo
	}
	return p.pausedTo
}
