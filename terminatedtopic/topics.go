package terminatedtopic

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Outcomes is what the topics show. coordinator.Group is one.
type Outcomes interface {
	// Connect calls done when coordinator tc serves, and ended when the term that answered ends, whoever goes on; the
	// registration ends with ctx.
	Connect(ctx context.Context, tc uint64, ended func(handedOver bool), done func(error))
	// ClientNames returns names that have outcomes, some at a time: from is 0, then next, until that is -1.
	ClientNames(ctx context.Context, tc uint64, from int) (names []preserver.Newest, next int, err error)
	// ClientOutcomes returns the newest outcomes of a name, at most limit.
	ClientOutcomes(ctx context.Context, tc uint64, key preserver.Key, limit int) (preserver.Shown, error)
}

// Topics are the topics of all coordinators. Close must be called.
type Topics struct {
	outcomes Outcomes
	options  Options
	ctx      context.Context
	cancel   context.CancelFunc
	tasks    sync.WaitGroup

	growing sync.Mutex               // held by who replaces all
	all     atomic.Pointer[[]*topic] // by coordinator; never nil
}

// Options say how the topics are served.
type Options struct {
	// Coordinators is how many there are at first.
	Coordinators uint64
	// MaxValueBytes bounds the value of one message (P-21).
	MaxValueBytes int
}

// New returns the topics of outcomes, which is asked from the first Subscribe on.
func New(outcomes Outcomes, options Options) *Topics {
	ts := &Topics{outcomes: outcomes, options: options}
	ts.ctx, ts.cancel = context.WithCancel(context.Background())
	ts.all.Store(&[]*topic{})
	ts.Grow(options.Coordinators)
	return ts
}

// Grow makes the topics of so many coordinators. It comes before their first change.
func (ts *Topics) Grow(coordinators uint64) {
	ts.growing.Lock()
	defer ts.growing.Unlock()
	all := slices.Clone(*ts.all.Load())
	for tc := uint64(len(all)); tc < coordinators; tc++ {
		all = append(all, newTopic(ts.ctx, &ts.tasks, ts.outcomes, tc, ts.options.MaxValueBytes))
	}
	ts.all.Store(&all)
}

// Close disconnects everybody and returns when nothing runs any more.
func (ts *Topics) Close() {
	ts.cancel()
	for _, t := range *ts.all.Load() {
		t.close()
	}
	ts.tasks.Wait()
}

// Changed takes a change of a coordinator's outcomes. It does not block.
func (ts *Topics) Changed(tc uint64, change coordinator.OutcomeChange) {
	(*ts.all.Load())[tc].changed(change)
}

const prefix = "__terminated_txn_state_"

// Serves reports whether name is the name of such a topic, of an existing coordinator or not.
func Serves(name topicname.Name) bool {
	_, is := number(name)
	return is
}

// number returns the coordinator whose topic has the name.
func number(name topicname.Name) (tc uint64, is bool) {
	digits, found := strings.CutPrefix(name.Local, prefix)
	if !found || name.Domain != topicname.Persistent || name.NamespaceName() != topicname.SystemNamespace {
		return 0, false
	}
	tc, err := strconv.ParseUint(digits, 10, 64)
	return tc, err == nil && strconv.FormatUint(tc, 10) == digits
}

var (
	errNotAuthorized = cnx.Refuse(pulsarproto.ServerError_AuthorizationError, "Only super-users may read the outcomes of transactions")
	errNotFound      = cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Topic not found")
	errConsumerBusy  = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Exclusive consumer is already connected")
	errConsumerGone  = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Consumer not found")
)

// Produce refuses every producer.
func (ts *Topics) Produce(name topicname.Name, caller cnx.Caller) error {
	if _, err := ts.find(name, caller); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is read-only, the coordinator alone writes it", txn.ErrNotAllowed, name)
}

// Subscribe attaches a reader or an Exclusive or Failover consumer, with readCompacted or without: the topic is compacted
// for both. It waits until the coordinator serves. Errors: AuthorizationError, TopicNotFound, ConsumerBusy, txn.ErrNotReady.
func (ts *Topics) Subscribe(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	t, err := ts.find(name, caller)
	if err != nil {
		return nil, err
	}
	switch kind := cmd.GetSubType(); {
	case kind != pulsarproto.CommandSubscribe_Exclusive && kind != pulsarproto.CommandSubscribe_Failover:
		return nil, fmt.Errorf("%w: %s takes Exclusive and Failover subscriptions, not %v", txn.ErrNotAllowed, name, kind)
	case cmd.GetSubscription() == "" || len(cmd.GetSubscription()) > maxSubscriptionName:
		return nil, fmt.Errorf("%w: subscription has %d bytes, want 1 to %d", txn.ErrNotAllowed, len(cmd.GetSubscription()), maxSubscriptionName)
	}
	return t.subscribe(ctx, cmd, client)
}

// maxSubscriptionName is in bytes: cursors are kept in memory.
const maxSubscriptionName = 1024

// find returns the topic. Whether it exists is told to super-users only.
func (ts *Topics) find(name topicname.Name, caller cnx.Caller) (*topic, error) {
	if caller.Known && !caller.Super {
		return nil, errNotAuthorized
	}
	tc, is := number(name)
	all := *ts.all.Load()
	if !is || tc >= uint64(len(all)) {
		return nil, errNotFound
	}
	return all[tc], nil
}
