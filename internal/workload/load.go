package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Subscriptions of the input topics, each with consumers of its own kind.
const (
	rawSubscription      = "raw"
	officialSubscription = "official"
	plainSubscription    = "plain"
)

const (
	// defaultRequestTime is long enough for a server to start again and answer.
	defaultRequestTime = 20 * time.Second
	defaultLongestTTL  = 8 * time.Second
	// retryPause is between two tries to reach a server that is down.
	retryPause = 20 * time.Millisecond
	// askPause is between two questions for outcomes that are known, so that they take no time from the workers.
	askPause = 5 * time.Millisecond
	// messagePause is how long a worker waits for a message to acknowledge.
	messagePause = 20 * time.Millisecond
	// kept is for how long outcomes must be known: longer than any test.
	kept = 24 * time.Hour
)

// Options say what the clients work on.
type Options struct {
	// Addrs are where clients begin, host:port, the same over all restarts: at servers of one cluster. WebURLs are their HTTP.
	Addrs, WebURLs []string
	// Coordinators is how many the cluster has; 0 is 1.
	Coordinators uint64
	// LongestTTL bounds the times to live of transactions; 0 is 8 s.
	LongestTTL time.Duration
	// UnnamedForgotten says that outcomes of unnamed clients may be forgotten at once.
	UnnamedForgotten bool
	// Disturbed says that not only servers fail: requests may stay without an answer on a connection that is open, and clients
	// connect again at any time.
	Disturbed bool
	// RequestTime bounds one request; 0 is 20 s, in which a server that starts again answers.
	RequestTime time.Duration
}

// Load is clients at work, and what they saw.
type Load struct {
	options   Options
	t         *testing.T
	history   *history.History
	officials []*faultnet.Link // by which official clients reach the servers
	inputs    []string
	outputs   []string
	ordered   string       // deduplicates
	fenced    string       // has one producer at a time
	restarts  atomic.Int64 // of the server, counted when it is down
	keys      atomic.Int64
	unsettled chan txn.ID // whose end got no definite answer
	// resender, if not nil, feeds the ordered topic.
	resender *resender
	// life, if not nil, makes and deletes topics.
	life *lifeWorker

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards the following
	settled []txn.ID   // transactions that have been told how they ended
	// lastServed is when the newest request was made that a coordinator or a topic served.
	lastServed map[string]time.Duration
}

// New prepares a cluster that has stored nothing yet for clients that work on it until t ends.
func New(t *testing.T, options Options) *Load {
	t.Helper()
	options.Coordinators = max(1, options.Coordinators)
	options.LongestTTL = cmp.Or(options.LongestTTL, defaultLongestTTL)
	options.RequestTime = cmp.Or(options.RequestTime, defaultRequestTime)
	l := &Load{options: options, t: t, history: history.New(), unsettled: make(chan txn.ID, 1<<16), lastServed: map[string]time.Duration{}}
	for _, addr := range options.Addrs {
		l.officials = append(l.officials, faultnet.New(t, addr))
	}
	for i := range 2 {
		l.inputs = append(l.inputs, fmt.Sprintf("persistent://public/default/input-%d", i))
	}
	for i := range 3 {
		l.outputs = append(l.outputs, fmt.Sprintf("persistent://public/default/output-%d", i))
	}
	l.ordered, l.fenced = "persistent://"+orderedNamespace+"/ordered", "persistent://public/default/fenced"
	l.ctx, l.cancel = context.WithCancel(t.Context())
	t.Cleanup(l.Stop)
	l.createNamespaces()
	l.createSubscriptions()
	return l
}

// History is what the clients saw.
func (l *Load) History() *history.History { return l.history }

// Restarted says that a server is down and will be started again.
func (l *Load) Restarted() { l.restarts.Add(1) }

// Pause lets the load run for a while.
func (l *Load) Pause(d time.Duration) { Pause(l.ctx, d) }

// Pause waits for a while, or until ctx is done.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// entry is the address at which a client begins.
func (l *Load) entry() string { return l.options.Addrs[rand.IntN(len(l.options.Addrs))] }

func (l *Load) webURL() string { return l.options.WebURLs[rand.IntN(len(l.options.WebURLs))] }

// route returns connections for one session of a client. They are closed quietly: their fate does not matter any more.
func (l *Load) route() (router *wiretopic.Router, closeQuietly func()) {
	router = wiretopic.NewRouter(l.entry())
	return router, func() { _ = router.Close() }
}

// orderedNamespace has topics that deduplicate.
const orderedNamespace = "public/ordered"

func (l *Load) createNamespaces() {
	l.t.Helper()
	for _, namespace := range []string{orderedNamespace, lifeNamespace} {
		if created, err := l.ask(l.ctx, http.MethodPut, "namespaces/"+namespace, ""); created != done {
			l.t.Fatal(err)
		}
	}
	if set, err := l.ask(l.ctx, http.MethodPost, "namespaces/"+orderedNamespace+"/deduplication", "true"); set != done {
		l.t.Fatal(err)
	}
}

// subscription is one whose messages are accounted for.
type subscription struct{ topic, name string }

func (l *Load) subscriptions() []subscription {
	all := []subscription{{l.ordered, keyedSubscription}}
	for _, topic := range l.inputs {
		for _, name := range []string{rawSubscription, officialSubscription, plainSubscription} {
			all = append(all, subscription{topic, name})
		}
	}
	return append(all, subscription{l.inputs[0], cumulativeSubscription})
}

// createSubscriptions comes before the first message, so that every message belongs to all of them.
func (l *Load) createSubscriptions() {
	l.t.Helper()
	router, closeQuietly := l.route()
	defer closeQuietly()
	for _, s := range l.subscriptions() {
		consumer, err := router.Subscribe(l.ctx, s.topic, s.name)
		if err == nil {
			err = consumer.Close(l.ctx)
		}
		if err != nil {
			l.t.Fatalf("subscribe %s to %s: %v", s.name, s.topic, err)
		}
	}
}

// Start puts all clients to work.
func (l *Load) Start() {
	for _, name := range []string{"", "", "payments", "orders"} {
		l.repeat(l.answered((&rawWorker{Load: l, clientName: name}).session))
	}
	for range officialWorkers {
		l.repeat((&officialWorker{Load: l}).session)
	}
	l.repeat(l.answered((&plainWorker{Load: l}).session))
	l.repeat(l.answered(l.askAgain))
}

// StartBesides puts clients to work that know no transactions, or only consume in them: a producer that sends again what
// has no receipt, consumers that share keys or acknowledge cumulatively, producers that fence each other, topics that come and go.
func (l *Load) StartBesides() {
	l.resender = &resender{Load: l}
	l.repeat(l.answered(l.resender.session))
	keyed, fencers := newKeyedConsumers(l), newFencers(l)
	for range 2 {
		l.repeat(l.answered(fencers.session))
	}
	for range 3 {
		l.repeat(l.answered(keyed.session))
	}
	l.repeat(l.answered((&cumulativeWorker{Load: l, topic: l.inputs[0]}).session))
	l.StartLives()
}

// StartLives puts a client to work that makes and deletes topics.
func (l *Load) StartLives() {
	l.life = &lifeWorker{Load: l}
	l.repeat(l.answered(l.life.session))
}

// StartPlain puts a client to work that knows no transactions.
func (l *Load) StartPlain() { l.repeat((&plainWorker{Load: l}).session) }

// StartBare puts clients to work that open and end transactions and do nothing in them.
func (l *Load) StartBare() {
	l.repeat(l.bareTransactions)
	l.repeat(l.askAgain)
}

// StartForgotten puts a client to work whose outcomes are forgotten at once, so that the log soon is worth cleaning.
func (l *Load) StartForgotten() { l.repeat(l.forgottenTransactions) }

// repeat runs sessions one after the other; each ends with its connection.
func (l *Load) repeat(session func(context.Context) error) {
	l.tasks.Go(func() {
		for l.ctx.Err() == nil {
			if err := session(l.ctx); err != nil {
				Pause(l.ctx, retryPause)
			}
		}
	})
}

// answered requires that each request of a session is answered or ends with its connection: silence is a fault (FC-12).
func (l *Load) answered(session func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := session(ctx)
		if errors.Is(err, context.DeadlineExceeded) && !l.options.Disturbed {
			l.t.Errorf("no answer for %v on an open connection: %v", l.options.RequestTime, err)
		}
		return err
	}
}

// Stop ends all clients. It may be called twice.
func (l *Load) Stop() {
	l.cancel()
	l.tasks.Wait()
	for _, official := range l.officials {
		official.Close()
	}
}

// key returns a content that no other message has.
func (l *Load) key() string { return fmt.Sprintf("m-%d", l.keys.Add(1)) }

// request bounds one request.
func (l *Load) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.options.RequestTime)
}

const shortestTTL = time.Second

func (l *Load) ttl() time.Duration { return shortestTTL + rand.N(l.options.LongestTTL-shortestTTL) }

// begin opens a transaction of any coordinator.
func (l *Load) begin(ctx context.Context, router *wiretopic.Router, ttl time.Duration, name string) (txn.ID, error) {
	return l.beginAt(ctx, router, rand.Uint64N(l.options.Coordinators), ttl, name)
}

func (l *Load) beginAt(ctx context.Context, router *wiretopic.Router, tc uint64, ttl time.Duration, name string) (txn.ID, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	client, err := router.Coordinator(ctx, tc)
	if err != nil {
		return txn.ID{}, err
	}
	call := l.history.Now()
	id, err := client.Begin(ctx, tc, uint64(ttl.Milliseconds()), name)
	if err != nil {
		return id, fmt.Errorf("NEW_TXN: %w", err)
	}
	l.opened(call, id, ttl, name)
	return id, nil
}

// opened records that a transaction of a client name was opened.
func (l *Load) opened(call time.Duration, id txn.ID, ttl time.Duration, name string) {
	op := history.Open{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, TTL: ttl, Kept: kept}
	if name == "" && l.options.UnnamedForgotten {
		op.Kept = 0
	}
	l.history.Opened(op)
}

// end ends a transaction. An error says that there was no definite answer.
func (l *Load) end(ctx context.Context, router *wiretopic.Router, id txn.ID, action txn.Action, name string) error {
	_, err := l.askEnd(ctx, router, id, action, name)
	return err
}

// askEnd is end that also returns the answer.
func (l *Load) askEnd(ctx context.Context, router *wiretopic.Router, id txn.ID, action txn.Action, name string) (history.Answer, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	client, err := router.Coordinator(ctx, id.Most)
	if err != nil {
		l.unsettled <- id
		return history.Unknown, err
	}
	call := l.history.Now()
	err = client.End(ctx, id, action, name)
	answer := answerOf(err)
	l.history.Ended(history.End{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, Action: action, Answer: answer})
	if answer == history.Unknown {
		l.unsettled <- id
		return answer, fmt.Errorf("END_TXN: %w", err)
	}
	l.settle(id)
	return answer, nil
}

func (l *Load) settle(id txn.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, id)
}

// anySettled returns a transaction that has been told how it ended.
func (l *Load) anySettled() (txn.ID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.settled) == 0 {
		return txn.ID{}, false
	}
	return l.settled[rand.IntN(len(l.settled))], true
}

// answerOf turns an error into an answer. An error that asks for a repetition, or none from the server at all, is no answer.
func answerOf(err error) history.Answer {
	var refusal *wireclient.ServerError
	switch {
	case err == nil:
		return history.Done
	case !errors.As(err, &refusal):
		return history.Unknown
	}
	switch refusal.Code {
	case pulsarproto.ServerError_InvalidTxnStatus:
		return history.Contrary
	case pulsarproto.ServerError_TransactionNotFound:
		return history.NotFound
	case pulsarproto.ServerError_NotAllowedError, pulsarproto.ServerError_TransactionConflict:
		return history.Refused
	}
	return history.Unknown
}

// askAgain asks for outcomes over a connection of its own: of transactions whose answer was lost until there is one, and of
// others again and again, for the action that was asked first or the contrary one.
func (l *Load) askAgain(ctx context.Context) error {
	router, closeQuietly := l.route()
	defer closeQuietly()
	for ctx.Err() == nil {
		var id txn.ID
		select {
		case id = <-l.unsettled:
		default:
			known, ok := l.anySettled()
			if !ok {
				Pause(ctx, retryPause)
				continue
			}
			id = known
			Pause(ctx, askPause)
			if rand.IntN(5) == 0 {
				if err := l.look(ctx, id); err != nil {
					return err
				}
				continue
			}
		}
		if err := l.end(ctx, router, id, txn.Action(rand.IntN(2)), ""); err != nil {
			return err
		}
	}
	return nil
}
