package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/authentication"
	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/certificate"
	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/conn"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/lookup"
	"github.com/pulsar-tc/pulsar-tc/nonpersistent"
	"github.com/pulsar-tc/pulsar-tc/participant/embedded"
	"github.com/pulsar-tc/pulsar-tc/participant/remote"
	"github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/schema/registry"
	"github.com/pulsar-tc/pulsar-tc/terminatedtopic"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicfeed"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
)

// Server is a running pulsar-tc.
type Server struct {
	options Options
	store   *etcdstore.Store
	limits  limits
	kv      clientv3.KV
	cluster *cluster.Cluster
	door    *peer.Door // nil, as peers: nobody shares the store
	peers   *peer.Pool
	leader  *etcdleader.Leader
	group   *coordinator.Group
	// newCoordinator makes one of the group.
	newCoordinator func(tc uint64) *coordinator.Coordinator
	count          atomic.Uint64 // of coordinators
	growing        sync.Mutex    // held by who changes count
	// missing is what the layout of the store lacks, by the last look; nil: nothing.
	missing   atomic.Pointer[txn.CorruptError]
	creator   *etcdcreator.Creator
	resources *resources.Resources
	// brokerPolicies hold where neither a topic nor its namespace says otherwise.
	brokerPolicies topic.Policies
	topics         *topic.Topics
	terminated     *terminatedtopic.Topics
	nonPersistent  *nonpersistent.Topics
	schemas        *registry.Registry
	feed           *topicfeed.Feed
	metrics        *metrics
	connections    *conn.Server
	certificates   *certificate.Store        // nil: TLS is off
	authentication *authentication.Service   // nil: off
	authorization  *authorization.Authorizer // nil: off
	newRights      chan struct{}             // something may have changed what roles may do
	ports          ports
	http           *http.Server
	requests       sync.RWMutex // of HTTP: each holds it for reading, and the end of the store, for good, for writing
	failed         chan error
	stop           context.CancelFunc // of everything but the store
	tasks          sync.WaitGroup
	closers        []func(context.Context) error // in order of start
}

// Start opens the ports and the store and returns when every coordinator serves, or after loadWait when some still load:
// health and the log say why. On an etcd cluster it does not wait: others may serve them. ctx bounds the start only.
func Start(ctx context.Context, options Options) (*Server, error) {
	s := &Server{options: options, failed: make(chan error, 1), newRights: make(chan struct{}, 1)}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, part := range []func(context.Context, context.Context) error{
		s.openSecurity, s.openPorts, s.openStore, s.openResources, s.openRights, s.joinCluster, s.openPeers, s.startTopics, s.serveBinary, s.serveWeb,
	} {
		if err := part(ctx, run); err != nil {
			return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}
	if options.External() {
		s.onClose(s.handOver)
	} else {
		s.awaitCoordinators(ctx)
	}
	return s, nil
}

// loadWait is how long Start waits for coordinators to load.
const loadWait = 20 * time.Second

func (s *Server) awaitCoordinators(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	for tc := range s.group.Count() {
		served := make(chan error, 1)
		s.group.Connect(ctx, tc, func(bool) {}, func(err error) { served <- err })
		if err := <-served; err != nil {
			s.options.Log.Warn().Err(err).Uint64("tc", tc).Msg("started although a coordinator does not serve yet")
		}
	}
}

func (s *Server) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// openResources reads tenants, namespaces and policies, which topics and permissions rest on.
func (s *Server) openResources(ctx, _ context.Context) error {
	s.creator = etcdcreator.New(s.creatorOptions())
	s.onClose(func(context.Context) error { s.creator.Close(); return nil })
	opened, err := resources.Open(ctx, resources.Options{
		Changed: s.rightsChanged, Shared: s.options.External(),
		KV: s.kv, Watcher: s.store.Client(), Keys: s.options.space(), Creator: s.creator, Log: s.options.Log,
		Cluster: s.options.Config.ClusterName,
	})
	if err != nil {
		return err
	}
	s.resources, s.brokerPolicies = opened, s.options.policies()
	s.onClose(func(context.Context) error { opened.Close(); return nil })
	return nil
}

// startTopics starts coordinators and topics, which know each other through small interfaces: a topic registers participants,
// a coordinator ends transactions on topics.
func (s *Server) startTopics(_, run context.Context) error {
	log, space := s.options.Log, s.options.space()
	leadership := s.options.leadership()
	leadership.Instance, leadership.Placement = s.cluster.Self().ID, placement{s.cluster}
	leader, err := etcdleader.New(storeClient{s.store.Client(), s.kv}, space, leadership, log)
	if err != nil {
		return err
	}
	s.leader = leader
	s.onClose(func(context.Context) error { leader.Close(); return nil })

	registrar := &registrar{server: s}
	topicOptions := s.options.topics(s.limits)
	topicOptions.KV, topicOptions.Creator, topicOptions.Registrar = s.kv, s.creator, registrar
	topicOptions.Policies, topicOptions.NamespaceExists, topicOptions.AutoCreation = s.topicPolicies, s.namespaceExists, s.autoCreation
	s.schemas = registry.New(s.schemaOptions())
	topicOptions.Schemas = s.schemas
	s.feed = topicfeed.New(s.store.Client(), space, log)
	s.onClose(func(context.Context) error { s.feed.Close(); return nil })
	topicOptions.Wrote, topicOptions.Admit, topicOptions.AdmitAck = s.store.Wrote, s.admitMessage, s.admitAck
	s.share(&topicOptions)
	s.topics = topic.New(topicOptions)
	if most := s.topics.MaxPartitions(); topicOptions.AutoPartitions > most {
		s.topics.Close(run)
		return fmt.Errorf("defaultNumPartitions=%d: a partitioned topic has at most %d partitions in this store", topicOptions.AutoPartitions, most)
	}
	s.onClose(s.closeTopics)
	s.nonPersistent = nonpersistent.New(s.nonPersistentOptions())
	s.terminated = terminatedtopic.New(registrar, s.options.terminated(s.limits))
	s.onClose(func(context.Context) error { s.terminated.Close(); return nil })
	s.onClose(s.closeConnections)

	s.group = s.newGroup(leader, space)
	registrar.Group = s.group
	if s.peers != nil {
		s.tasks.Go(func() { s.followPlaces(run) })
	}
	s.group.Start(run)
	s.onClose(func(context.Context) error { s.group.Close(); return nil })
	if s.options.Config.TransactionCoordinatorEnabled {
		s.growTo(s.store.Coordinators())
		s.tasks.Go(func() { s.followCount(run) })
	}
	s.tasks.Go(func() { s.watchSpace(run) })
	return nil
}

// newGroup makes every coordinator.
func (s *Server) newGroup(leader *etcdleader.Leader, space keyspace.Space) *coordinator.Group {
	s.metrics = newMetrics(s.options.Config.ClusterName)
	events := logged(s.metrics.coordinatorEvents(), s.options.Log)
	events.OutcomesChanged = s.terminated.Changed
	options := s.options.coordinator(events, s.limits)
	if s.peers != nil {
		options.Relay = relay{s.cluster, s.peers}
	}
	participants, openLog := s.participants(), s.openLog(space)
	s.newCoordinator = func(tc uint64) *coordinator.Coordinator {
		return coordinator.New(tc, options, terms{leader}, openLog, participants, s.options.Log)
	}
	group := coordinator.NewGroup(nil, options)
	s.metrics.watch(s.options.Config.ClusterName, group.Statuses)
	s.metrics.watchTopics(s.options.Config, s.topics.Stats)
	s.metrics.watchStore(s.options.Config.ClusterName, s.store.Space)
	s.metrics.watchCluster(s.options.Config.ClusterName, s.cluster)
	return group
}

// participants are the topics of every instance.
func (s *Server) participants() coordinator.Participants {
	here := embedded.New(s.topics)
	if s.peers == nil {
		return here
	}
	return remote.New(here, s.topics, s.cluster, s.peers)
}

func (s *Server) openLog(space keyspace.Space) func(uint64, coordinator.Term) coordinator.Log {
	options := etcdlog.Options{
		MaxOps: s.limits.txnOps, MaxBytes: s.limits.requestBytes, Pin: s.store.Pin, Wrote: s.store.Wrote,
	}
	return func(tc uint64, term coordinator.Term) coordinator.Log {
		return etcdlog.New(s.kv, space, tc, term.Number(), options)
	}
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

// storeClient sends what writes and reads keys through kv.
type storeClient struct {
	*clientv3.Client
	kv clientv3.KV
}

func (c storeClient) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return c.kv.Get(ctx, key, opts...)
}

func (c storeClient) Txn(ctx context.Context) clientv3.Txn { return c.kv.Txn(ctx) }

func (s *Server) serveBinary(_, run context.Context) error {
	wherever := lookup.Options{ServiceURL: s.ServiceURL(), ServiceURLTLS: s.ServiceURLTLS(), NamespaceExists: s.namespaceExists}
	if s.options.External() {
		wherever.Owner = s.owner
	}
	where, err := lookup.New(wherever)
	if err != nil {
		return err
	}
	options := s.options.connections(s.metrics.connectionEvents(), s.limits)
	if s.authentication != nil {
		options.Authenticator = s.authentication
	}
	if s.authorization != nil {
		options.Authorizer = s.authorization
	}
	if s.door != nil {
		options.Instances = s.door
	}
	s.connections = conn.NewServer(options, conn.Services{
		Coordinators: &coordinators{s.group}, Topics: s.namedTopics(), Lookup: where,
		Schemas: &schemas{s.schemas, s.topics, s.nonPersistent}, TopicFeed: s.feed,
	})
	s.onClose(s.drain)
	if s.authorization != nil {
		s.tasks.Go(func() { s.followRights(run) })
	}
	for _, p := range []*port{s.ports.binary, s.ports.binaryTLS} {
		if p != nil {
			s.serve(p.url, func() error { return s.connections.Serve(p) }, conn.ErrClosed)
		}
	}
	return nil
}

func (s *Server) serveWeb(_, run context.Context) error {
	s.http = &http.Server{
		BaseContext:       func(net.Listener) context.Context { return run },
		Handler:           s.whileStored(s.paths(s.operatorsOnly(admin.New(inspection{s.group, s}, s.health, s.metrics.handler(), s.options.Log)))),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    8 << 10, // source: broker.conf httpMaxRequestHeaderSize
		ErrorLog:          stdlog.New(faultLog{s.options.Log}, "", 0),
	}
	for _, p := range []*port{s.ports.web, s.ports.webTLS} {
		if p != nil {
			s.serve(p.url, func() error { return s.http.Serve(p) }, http.ErrServerClosed)
		}
	}
	return nil
}

// whileStored makes the end of the store wait for each request, also for one whose connection was cut off.
func (s *Server) whileStored(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.requests.TryRLock() {
			panic(http.ErrAbortHandler) // nobody is connected any more
		}
		defer s.requests.RUnlock()
		next.ServeHTTP(w, r)
	})
}

// faultLog takes what package http says about the faults of its peers, such as a TLS handshake that failed.
type faultLog struct{ log zerolog.Logger }

func (l faultLog) Write(line []byte) (int, error) {
	l.log.Debug().Bytes("fault", bytes.TrimSpace(line)).Msg("HTTP connection failed")
	return len(line), nil
}

// serve runs a listener's loop; whatever ends it but the orderly stop ends the process.
func (s *Server) serve(name string, loop func() error, orderly error) {
	s.tasks.Go(func() {
		if err := loop(); !errors.Is(err, orderly) {
			s.fail(fmt.Errorf("%s listener: %w", name, err))
		}
	})
}

// fail ends the process with the first reason there is.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Failed delivers what makes going on impossible; the process must end.
func (s *Server) Failed() <-chan error { return s.failed }
