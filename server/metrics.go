package server

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/conn"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// latencyBounds are the upper ends of Pulsar's ranges, ms. Each metric counts its own range only.
//
// Source: TransactionMetadataStoreStats, pulsar_txn_execution_latency_le_*.
var latencyBounds = []int64{10, 20, 50, 100, 500, 1000, 5000, 15000, 30000, 60000, 300000, 1500000, 3000000}

// metrics are what /metrics shows. Names are Pulsar's where Pulsar has one, pulsar_tc_ otherwise. No label takes a value
// that a client chooses.
type metrics struct {
	registry   *prometheus.Registry
	created    *prometheus.CounterVec
	committed  *prometheus.CounterVec
	aborted    *prometheus.CounterVec
	timedOut   *prometheus.CounterVec
	appended   *prometheus.CounterVec
	contrary   *prometheus.CounterVec
	rejected   *prometheus.CounterVec
	driveFails *prometheus.CounterVec
	resolved   *prometheus.CounterVec
	terms      *prometheus.CounterVec
	loadFails  *prometheus.CounterVec
	clock      *prometheus.GaugeVec
	latency    []*prometheus.CounterVec // by latencyBounds, overflow last
	appendTime *prometheus.HistogramVec
	batch      *prometheus.HistogramVec
	opened     prometheus.Counter
	closed     *prometheus.CounterVec
	refused    prometheus.Counter
	commands   *prometheus.CounterVec
	failed     *prometheus.CounterVec
	badInput   *prometheus.CounterVec

	coordinators atomic.Pointer[[]coordinatorMetrics]
}

func newMetrics(cluster string) *metrics {
	registry := prometheus.NewRegistry()
	// go_memstats_alloc_bytes and go_memstats_alloc_bytes_total are one name in OpenMetrics, which allows a name once.
	runtime := collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled(),
		collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsMemory))
	registry.MustRegister(runtime, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{prometheus.WrapRegistererWith(prometheus.Labels{"cluster": cluster}, registry)}
	const tc = "coordinator_id"
	m := &metrics{
		registry:   registry,
		created:    f.counters("pulsar_txn_created_total", "Transactions opened.", tc),
		committed:  f.counters("pulsar_txn_committed_total", "Transactions that ended committed.", tc),
		aborted:    f.counters("pulsar_txn_aborted_total", "Transactions that ended aborted.", tc),
		timedOut:   f.counters("pulsar_txn_timeout_total", "Transactions that their deadline decided.", tc),
		appended:   f.counters("pulsar_txn_append_log_total", "Records appended to the log.", tc),
		contrary:   f.counters("pulsar_tc_contrary_end_total", "END_TXN requests refused because the opposite is decided.", tc),
		rejected:   f.counters("pulsar_tc_rejected_requests_total", "Requests that a coordinator answered with an error.", tc),
		driveFails: f.counters("pulsar_tc_participant_failures_total", "Failed attempts at telling a participant of a decision.", tc),
		resolved:   f.counters("pulsar_tc_resolved_participants_total", "Participants that an operator declared done.", tc),
		terms:      f.counters("pulsar_tc_terms_total", "Terms of leadership begun.", tc),
		loadFails:  f.counters("pulsar_tc_load_failures_total", "Loads of a coordinator that failed.", tc),
		clock:      f.gauges("pulsar_tc_clock_behind_seconds", "How far the clock was behind the ids already used when the term began.", tc),
		appendTime: f.histograms("pulsar_tc_append_seconds", "Time of one group commit.", prometheus.ExponentialBuckets(0.0005, 2, 14), tc),
		batch:      f.histograms("pulsar_txn_tc_bufferedwriter_batch_records", "Records of one group commit.", []float64{10, 50, 100, 200, 500, 1000}, tc),
		opened:     f.counters("pulsar_tc_connections_opened_total", "Connections accepted.").WithLabelValues(),
		closed:     f.counters("pulsar_tc_connections_closed_total", "Connections closed.", "reason"),
		refused:    f.counters("pulsar_tc_connections_refused_total", "Connections over a limit.").WithLabelValues(),
		commands:   f.counters("pulsar_tc_commands_total", "Commands received.", "command"),
		failed:     f.counters("pulsar_tc_failed_requests_total", "Requests answered with an error.", "command", "code"),
		badInput:   f.counters("pulsar_tc_bad_input_total", "Input that was refused for its bytes.", "reason"),
	}
	for _, bound := range latencyBounds {
		m.latency = append(m.latency, f.counters("pulsar_txn_execution_latency_le_"+strconv.FormatInt(bound, 10),
			"Transactions that ended in this range of milliseconds since they were opened.", tc))
	}
	m.latency = append(m.latency, f.counters("pulsar_txn_execution_latency_le_overflow", "Transactions that took longer than every range.", tc))
	return m
}

// factory makes and registers metrics.
type factory struct{ registerer prometheus.Registerer }

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.registerer.MustRegister(v)
	return v
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.registerer.MustRegister(v)
	return v
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.registerer.MustRegister(v)
	return v
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true})
}

// grow makes the metrics of so many coordinators. It is called by one goroutine at a time.
func (m *metrics) grow(count uint64) {
	var all []coordinatorMetrics
	if known := m.coordinators.Load(); known != nil {
		all = *known
	}
	all = slices.Clone(all)
	for tc := uint64(len(all)); tc < count; tc++ {
		label := strconv.FormatUint(tc, 10)
		all = append(all, coordinatorMetrics{label, m.hot(label)})
		m.clock.WithLabelValues(label).Set(0)
	}
	m.coordinators.Store(&all)
}

// coordinatorMetrics are what events of one coordinator need.
type coordinatorMetrics struct {
	label string
	hot   hotMetrics
}

// coordinatorEvents feeds the coordinators' events to the metrics. grow comes first.
func (m *metrics) coordinatorEvents() coordinator.Events {
	label := func(tc uint64) string { return (*m.coordinators.Load())[tc].label }
	hot := func(tc uint64) *hotMetrics { return &(*m.coordinators.Load())[tc].hot }
	return coordinator.Events{
		TermBegan:   func(tc uint64, _ int64, _, _ int, _ time.Duration) { m.terms.WithLabelValues(label(tc)).Inc() },
		LoadFailed:  func(tc uint64, _ error) { m.loadFails.WithLabelValues(label(tc)).Inc() },
		ClockBehind: func(tc uint64, by time.Duration) { m.clock.WithLabelValues(label(tc)).Set(by.Seconds()) },
		Created:     func(tc uint64) { hot(tc).created.Inc() },
		Ended:       func(tc uint64, action txn.Action, _ bool, open time.Duration) { hot(tc).ended(action, open) },
		Expired:     func(tc uint64, _ txn.ID) { m.timedOut.WithLabelValues(label(tc)).Inc() },
		Contrary:    func(tc uint64, _ txn.ID, _ txn.Action) { m.contrary.WithLabelValues(label(tc)).Inc() },
		Resolved:    func(tc uint64, _ txn.ID, _ txn.Participant, _ string) { m.resolved.WithLabelValues(label(tc)).Inc() },
		Appended: func(tc uint64, changes, _ int, took time.Duration) {
			of := hot(tc)
			of.appended.Add(float64(changes))
			of.batch.Observe(float64(changes))
			of.appendTime.Observe(took.Seconds())
		},
		DriveFailed:     func(tc uint64, _ txn.ID, _ txn.Participant, _ error) { m.driveFails.WithLabelValues(label(tc)).Inc() },
		RequestRejected: func(tc uint64, _ error) { m.rejected.WithLabelValues(label(tc)).Inc() },
	}
}

// hotMetrics are those that every transaction touches, looked up once for each coordinator.
type hotMetrics struct {
	created, committed, aborted, appended prometheus.Counter
	batch, appendTime                     prometheus.Observer
	latency                               []prometheus.Counter // by latencyBounds, overflow last
}

func (m *metrics) hot(label string) hotMetrics {
	h := hotMetrics{
		created: m.created.WithLabelValues(label), committed: m.committed.WithLabelValues(label),
		aborted: m.aborted.WithLabelValues(label), appended: m.appended.WithLabelValues(label),
		batch: m.batch.WithLabelValues(label), appendTime: m.appendTime.WithLabelValues(label),
	}
	for _, ranges := range m.latency {
		h.latency = append(h.latency, ranges.WithLabelValues(label))
	}
	return h
}

func (h *hotMetrics) ended(action txn.Action, open time.Duration) {
	if action == txn.Commit {
		h.committed.Inc()
	} else {
		h.aborted.Inc()
	}
	i := 0
	for i < len(latencyBounds) && open.Milliseconds() > latencyBounds[i] {
		i++
	}
	h.latency[i].Inc()
}

// connectionEvents feeds the connections' events to the metrics.
func (m *metrics) connectionEvents() conn.Events {
	var received sync.Map // of the commands that came: their counters
	return conn.Events{
		ConnectionOpened:  m.opened.Inc,
		ConnectionClosed:  func(reason conn.CloseReason) { m.closed.WithLabelValues(string(reason)).Inc() },
		ConnectionRefused: m.refused.Inc,
		CommandReceived: func(command pulsarproto.BaseCommand_Type) {
			counter, known := received.Load(command)
			if !known {
				counter, _ = received.LoadOrStore(command, m.commands.WithLabelValues(command.String()))
			}
			counter.(prometheus.Counter).Inc()
		},
		RequestFailed: func(command pulsarproto.BaseCommand_Type, code pulsarproto.ServerError) {
			m.failed.WithLabelValues(command.String(), code.String()).Inc()
		},
		BadInput: func(reason conn.BadInput) { m.badInput.WithLabelValues(string(reason)).Inc() },
	}
}

// watch adds gauges that are read from the coordinators at each scrape.
func (m *metrics) watch(cluster string, statuses func() []coordinator.Status) {
	m.registry.MustRegister(&statusCollector{cluster: cluster, statuses: statuses})
}

// statusCollector shows coordinator.Status as gauges.
type statusCollector struct {
	cluster  string
	statuses func() []coordinator.Status
}

// watchStore shows what the store has room for.
func (m *metrics) watchStore(name string, space func() etcdstore.Space) {
	registerer := prometheus.WrapRegistererWith(prometheus.Labels{"cluster": name}, m.registry)
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_tc_store_space", Help: "What the store refuses for lack of space: 0 nothing, 1 messages, 2 new transactions too, 3 everything.",
	}, func() float64 { return float64(space()) }))
}

// watchCluster shows the instances that share the store.
func (m *metrics) watchCluster(name string, c *cluster.Cluster) {
	registerer := prometheus.WrapRegistererWith(prometheus.Labels{"cluster": name}, m.registry)
	registerer.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pulsar_tc_instances", Help: "Instances that share the store, as far as this one knows."},
			func() float64 { return float64(len(c.Instances())) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pulsar_tc_clock_skew_seconds", Help: "How far the clock of another instance is from the clock here, at most."},
			func() float64 { return largestSkew(c).Seconds() }),
	)
}

var statusGauges = []struct {
	desc  *prometheus.Desc
	value func(*coordinator.Status) float64
}{
	gauge("pulsar_txn_active_count", "Transactions that have not ended.", func(s *coordinator.Status) float64 { return float64(s.Live) }),
	gauge("pulsar_tc_outcomes", "Outcomes kept.", func(s *coordinator.Status) float64 { return float64(s.Outcomes) }),
	gauge("pulsar_tc_client_names", "Client names with outcomes or live transactions.", func(s *coordinator.Status) float64 { return float64(s.Names) }),
	gauge("pulsar_tc_log_bytes", "What the log takes in the store.", func(s *coordinator.Status) float64 { return float64(s.LogBytes) }),
	gauge("pulsar_tc_log_live_bytes", "What of the log is live.", func(s *coordinator.Status) float64 { return float64(s.LogLiveBytes) }),
	gauge("pulsar_tc_last_issued", "Last sequence number issued.", func(s *coordinator.Status) float64 { return float64(s.LastIssued) }),
	gauge("pulsar_tc_load_seconds", "Time that the last load took.", func(s *coordinator.Status) float64 { return s.LoadTook.Seconds() }),
	gauge("pulsar_tc_serving", "1 while the coordinator serves.", func(s *coordinator.Status) float64 {
		if s.Serving {
			return 1
		}
		return 0
	}),
}

func gauge(name, help string, value func(*coordinator.Status) float64) struct {
	desc  *prometheus.Desc
	value func(*coordinator.Status) float64
} {
	return struct {
		desc  *prometheus.Desc
		value func(*coordinator.Status) float64
	}{prometheus.NewDesc(name, help, []string{"cluster", "coordinator_id"}, nil), value}
}

func (c *statusCollector) Describe(descs chan<- *prometheus.Desc) {
	for i := range statusGauges {
		descs <- statusGauges[i].desc
	}
}

func (c *statusCollector) Collect(values chan<- prometheus.Metric) {
	for _, s := range c.statuses() {
		id := strconv.FormatUint(s.TC, 10)
		for i := range statusGauges {
			g := &statusGauges[i]
			values <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(&s), c.cluster, id)
		}
	}
}
