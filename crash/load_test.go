package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
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
	// requestTime bounds one request. A server that starts again answers well before.
	requestTime = 20 * time.Second
	// retryPause is between two tries to reach a server that is down.
	retryPause = 20 * time.Millisecond
	// askPause is between two questions for outcomes that are known, so that they take no time from the workers.
	askPause = 5 * time.Millisecond
	// messagePause is how long a worker waits for a message to acknowledge.
	messagePause = 20 * time.Millisecond
	// kept is for how long outcomes must be known: longer than any test.
	kept = 24 * time.Hour
)

// load is clients at work, and what they saw.
type load struct {
	t         *testing.T
	history   *history.History
	addr      string     // host:port, the same over all restarts
	officials *forwarder // by which official clients reach the server
	webURL    string     // the same, too
	inputs    []string
	outputs   []string
	ordered   string       // deduplicates
	fenced    string       // has one producer at a time
	restarts  atomic.Int64 // of the server, counted when it is down
	keys      atomic.Int64
	unsettled chan txn.ID // whose end got no definite answer
	// longestTTL bounds the times to live of transactions.
	longestTTL time.Duration
	// resender, if not nil, feeds the ordered topic.
	resender *resender
	// life, if not nil, makes and deletes topics.
	life *lifeWorker
	// unnamedKept is for how long outcomes of unnamed clients must be known.
	unnamedKept time.Duration

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	settled []txn.ID // guarded by mu: transactions that have been told how they ended
}

func newLoad(t *testing.T, s *process.Instance) *load {
	l := &load{
		t: t, history: history.New(), addr: fmt.Sprintf("localhost:%d", s.Options.Port), webURL: s.Server.WebURL,
		unsettled: make(chan txn.ID, 1<<16), longestTTL: 8 * time.Second, unnamedKept: kept,
	}
	l.officials = newForwarder(t, l.addr)
	for i := range 2 {
		l.inputs = append(l.inputs, fmt.Sprintf("persistent://public/default/input-%d", i))
	}
	for i := range 3 {
		l.outputs = append(l.outputs, fmt.Sprintf("persistent://public/default/output-%d", i))
	}
	l.ordered, l.fenced = "persistent://"+orderedNamespace+"/ordered", "persistent://public/default/fenced"
	l.ctx, l.cancel = context.WithCancel(t.Context())
	t.Cleanup(l.stop)
	l.createNamespaces()
	l.createSubscriptions()
	return l
}

// orderedNamespace has topics that deduplicate.
const orderedNamespace = "public/ordered"

func (l *load) createNamespaces() {
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

func (l *load) subscriptions() []subscription {
	all := []subscription{{l.ordered, keyedSubscription}}
	for _, topic := range l.inputs {
		for _, name := range []string{rawSubscription, officialSubscription, plainSubscription} {
			all = append(all, subscription{topic, name})
		}
	}
	return all
}

// createSubscriptions comes before the first message, so that every message belongs to all of them.
func (l *load) createSubscriptions() {
	l.t.Helper()
	client, err := wiretopic.DialTC(l.ctx, l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range l.subscriptions() {
		consumer, err := client.Subscribe(l.ctx, s.topic, s.name)
		if err == nil {
			err = consumer.Close(l.ctx)
		}
		if err != nil {
			l.t.Fatalf("subscribe %s to %s: %v", s.name, s.topic, err)
		}
	}
	if err := client.Close(); err != nil {
		l.t.Fatal(err)
	}
}

// start puts all clients to work.
func (l *load) start() {
	for _, name := range []string{"", "", "payments", "orders"} {
		l.repeat(l.answered((&rawWorker{load: l, clientName: name}).session))
	}
	for range officialWorkers {
		l.repeat((&officialWorker{load: l}).session)
	}
	l.repeat(l.answered((&plainWorker{load: l}).session))
	l.repeat(l.answered(l.askAgain))
}

// startBesides puts clients to work that know no transactions, or only consume in them: a producer that sends again what
// has no receipt, consumers that share keys, producers that fence each other, topics that come and go.
func (l *load) startBesides() {
	l.resender = &resender{load: l}
	l.repeat(l.answered(l.resender.session))
	keyed, fencers := newKeyedConsumers(l), newFencers(l)
	for range 2 {
		l.repeat(l.answered(fencers.session))
	}
	for range 3 {
		l.repeat(l.answered(keyed.session))
	}
	l.startLives()
}

func (l *load) startLives() {
	l.life = &lifeWorker{load: l}
	l.repeat(l.answered(l.life.session))
}

// repeat runs sessions one after the other; each ends with its connection.
func (l *load) repeat(session func(context.Context) error) {
	l.tasks.Go(func() {
		for l.ctx.Err() == nil {
			if err := session(l.ctx); err != nil {
				pause(l.ctx, retryPause)
			}
		}
	})
}

// answered requires that each request of a session is answered or ends with its connection: silence is a fault (FC-12).
func (l *load) answered(session func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := session(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			l.t.Errorf("no answer for %v on an open connection: %v", requestTime, err)
		}
		return err
	}
}

// stop ends all clients. It may be called twice.
func (l *load) stop() {
	l.cancel()
	l.tasks.Wait()
	l.officials.close()
}

// key returns a content that no other message has.
func (l *load) key() string { return fmt.Sprintf("m-%d", l.keys.Add(1)) }

// request bounds one request.
func request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTime)
}

const shortestTTL = time.Second

func (l *load) ttl() time.Duration { return shortestTTL + rand.N(l.longestTTL-shortestTTL) }

// begin opens a transaction.
func (l *load) begin(ctx context.Context, client *wiretopic.Client, ttl time.Duration, name string) (txn.ID, error) {
	ctx, cancel := request(ctx)
	defer cancel()
	call := l.history.Now()
	id, err := client.Begin(ctx, 0, uint64(ttl.Milliseconds()), name)
	if err != nil {
		return id, fmt.Errorf("NEW_TXN: %w", err)
	}
	l.opened(call, id, ttl, name)
	return id, nil
}

// opened records that a transaction of a client name was opened.
func (l *load) opened(call time.Duration, id txn.ID, ttl time.Duration, name string) {
	op := history.Open{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, TTL: ttl, Kept: kept}
	if name == "" {
		op.Kept = l.unnamedKept
	}
	l.history.Opened(op)
}

// end ends a transaction. An error says that there was no definite answer.
func (l *load) end(ctx context.Context, client *wiretopic.Client, id txn.ID, action txn.Action, name string) error {
	ctx, cancel := request(ctx)
	defer cancel()
	call := l.history.Now()
	err := client.End(ctx, id, action, name)
	answer := answerOf(err)
	l.history.Ended(history.End{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, Action: action, Answer: answer})
	if answer == history.Unknown {
		l.unsettled <- id
		return fmt.Errorf("END_TXN: %w", err)
	}
	l.settle(id)
	return nil
}

func (l *load) settle(id txn.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, id)
}

// anySettled returns a transaction that has been told how it ended.
func (l *load) anySettled() (txn.ID, bool) {
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
func (l *load) askAgain(ctx context.Context) error {
	client, err := wiretopic.DialTC(ctx, l.addr)
	if err != nil {
		return err
	}
	defer closeQuietly(client)
	for ctx.Err() == nil {
		var id txn.ID
		select {
		case id = <-l.unsettled:
		default:
			known, ok := l.anySettled()
			if !ok {
				pause(ctx, retryPause)
				continue
			}
			id = known
			pause(ctx, askPause)
			if rand.IntN(5) == 0 {
				if err := l.look(ctx, id); err != nil {
					return err
				}
				continue
			}
		}
		if err := l.end(ctx, client, id, txn.Action(rand.IntN(2)), ""); err != nil {
			return err
		}
	}
	return nil
}

// closeQuietly closes a connection whose fate does not matter any more.
func closeQuietly(client *wiretopic.Client) { _ = client.Close() }
