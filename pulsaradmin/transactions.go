package pulsaradmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Transactions answers for the coordinators. Errors are package txn's.
type Transactions interface {
	// Count is the number of coordinators; 0 if transactions are off.
	Count() uint64
	// LedHere returns nil if this process leads a coordinator or is to. Errors: *LedElsewhereError; txn.ErrNotReady.
	LedHere(ctx context.Context, tc uint64) error
	// Coordinator is the state of one that is led here.
	Coordinator(tc uint64) Coordinator
	// Describe tells of one transaction. Errors: *txn.NotFoundError, those of LedHere.
	Describe(ctx context.Context, id txn.ID) (Transaction, error)
	// Slow lists live transactions, whose timeout is longer than timeout, of a coordinator that is led here; at most limit.
	Slow(ctx context.Context, timeout time.Duration, tc uint64, limit int) ([]Transaction, error)
	// Abort ends a transaction; it returns when it has ended. Errors: *txn.StatusError, *txn.NotFoundError, those of LedHere.
	Abort(ctx context.Context, id txn.ID, caller cnx.Caller) error
	// Grow makes coordinators until there are count. Errors: txn.ErrNotAllowed if there are as many already, and Count tells how
	// many; txn.ErrNotReady if it is not known whether there are.
	Grow(ctx context.Context, count uint64) error
}

// Coordinator is the state of one coordinator.
type Coordinator struct {
	ID           uint64
	Serving      bool
	LastIssued   uint64 // least significant bits of the last id
	LowWaterMark uint64
	Live         int
	RecoverStart int64 // Unix ms: the load of its log
	RecoverEnd   int64
}

// Transaction is what is shown of one.
type Transaction struct {
	ID         txn.ID
	Status     txn.Status
	OpenedAt   int64 // Unix ms
	TTLMillis  uint64
	Owner      string
	Topics     []string
	Subscribed []txn.Participant
}

func (h *handler) routeTransactions() {
	const path = " /admin/v3/transactions"
	h.route("GET"+path+"/coordinators", h.ofTransactions(superUser, h.listCoordinators))
	h.route("GET"+path+"/coordinatorStats", h.ofTransactions(superUser, h.coordinatorStats))
	h.route("GET"+path+"/transactionMetadata/{most}/{least}", h.ofTransactions(everybody, h.transactionMetadata))
	h.route("GET"+path+"/slowTransactions/{timeout}", h.ofTransactions(superUser, h.slowTransactions))
	h.route("POST"+path+"/abortTransaction/{most}/{least}", h.ofTransactions(superUser, h.abortTransaction))
	const inTopic, inSubscription = "/{tenant}/{namespace}/{topic}", "/{tenant}/{namespace}/{topic}/{subscription}"
	h.route("GET"+path+"/transactionBufferStats"+inTopic, h.ofTransactions(superUser, h.bufferStats))
	h.route("GET"+path+"/transactionInBufferStats"+inTopic+"/{most}/{least}", h.ofTransactions(superUser, h.inBufferStats))
	h.route("GET"+path+"/pendingAckStats"+inSubscription, h.ofTransactions(superUser, h.pendingAckStats))
	h.route("GET"+path+"/transactionInPendingAckStats"+inSubscription+"/{most}/{least}", h.ofTransactions(superUser, h.inPendingAckStats))
	h.route("GET"+path+"/positionStatsInPendingAck"+inSubscription+"/{ledger}/{entry}", h.ofTransactions(superUser, h.positionStats))
	h.route("POST"+path+"/transactionCoordinator/replicas", h.ofTransactions(superUser, h.scaleCoordinators))
}

// audience is who may ask.
type audience bool

// Everybody may ask for one transaction by its id, as in Pulsar, whose clients' tests rely on it; only super users for the rest
// (TC-27).
const (
	superUser audience = false
	everybody audience = true
)

func (h *handler) ofTransactions(who audience, answer func(*call) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if who == superUser {
			if err := c.super("transactions"); err != nil {
				return nil, err
			}
		}
		if h.Transactions.Count() == 0 {
			return nil, &refusal{http.StatusServiceUnavailable, "This Broker is not configured with transactionCoordinatorEnabled=true."}
		}
		return answer(c)
	}
}

// leaderPatience is how long a list of coordinators waits for leaders that are not known.
const leaderPatience = time.Second

// listCoordinators names the leader of each. One that nobody leads at the moment is at no address.
func (h *handler) listCoordinators(c *call) (any, error) {
	type one struct {
		ID  uint64 `json:"id"`
		URL string `json:"brokerServiceUrl"`
	}
	ctx, cancel := context.WithTimeout(c.Context(), leaderPatience)
	defer cancel()
	list := []one{}
	for tc := range h.Transactions.Count() {
		at := one{ID: tc}
		err := h.Transactions.LedHere(ctx, tc)
		var led *LedElsewhereError
		switch {
		case err == nil:
			at.URL = h.Broker.ServiceURL
		case errors.As(err, &led):
			at.URL = led.Leader.ServiceURL
		}
		list = append(list, at)
	}
	return list, nil
}

// coordinatorStats is Pulsar's TransactionCoordinatorStats.
type coordinatorStats struct {
	State             string `json:"state"`
	LeastSigBits      uint64 `json:"leastSigBits"`
	LowWaterMark      uint64 `json:"lowWaterMark"`
	OngoingTxnSize    int    `json:"ongoingTxnSize"`
	RecoverStartTime  int64  `json:"recoverStartTime"`
	RecoverFinishTime int64  `json:"recoverEndTime"`
}

func shownCoordinator(c Coordinator) coordinatorStats {
	s := coordinatorStats{
		State: "Initializing", LeastSigBits: c.LastIssued, LowWaterMark: c.LowWaterMark, OngoingTxnSize: c.Live,
		RecoverStartTime: c.RecoverStart, RecoverFinishTime: c.RecoverEnd,
	}
	if c.Serving {
		s.State = "Ready"
	}
	return s
}

// coordinatorID reads the query parameter; nil is all.
func (c *call) coordinatorID() (*uint64, error) {
	text := c.URL.Query().Get("coordinatorId")
	if text == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id >= c.h.Transactions.Count() {
		return nil, &refusal{http.StatusNotFound, "Transaction coordinator not found! coordinator id : " + text}
	}
	return &id, nil
}

func (h *handler) coordinatorStats(c *call) (any, error) {
	wanted, err := c.coordinatorID()
	if err != nil {
		return nil, err
	}
	statsOf := func(tc uint64) (coordinatorStats, error) {
		return shownCoordinator(h.Transactions.Coordinator(tc)), nil
	}
	if wanted != nil {
		if err := h.Transactions.LedHere(c.Context(), *wanted); err != nil {
			return nil, err
		}
		return statsOf(*wanted)
	}
	all := map[string]coordinatorStats{}
	for tc := range h.Transactions.Count() {
		if all[strconv.FormatUint(tc, 10)], err = atLeader(c, tc, statsOf); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// transactionMetadata is Pulsar's, whose timeoutAt is the timeout and no time.
type transactionMetadata struct {
	ID        string                         `json:"txnId"`
	Status    string                         `json:"status"`
	OpenedAt  int64                          `json:"openTimestamp"`
	TimeoutAt uint64                         `json:"timeoutAt"`
	Produced  map[string]transactionInBuffer `json:"producedPartitions"`
	Acked     map[string]map[string]struct{} `json:"ackedPartitions"` // by topic and subscription
	Owner     string                         `json:"owner,omitempty"`
}

// transactionInBuffer is the part of a transaction at a topic.
type transactionInBuffer struct {
	Aborted bool `json:"aborted"`
}

func shownTransaction(t Transaction) transactionMetadata {
	m := transactionMetadata{
		ID: t.ID.String(), Status: t.Status.String(), OpenedAt: t.OpenedAt, TimeoutAt: t.TTLMillis, Owner: t.Owner,
		Produced: map[string]transactionInBuffer{}, Acked: map[string]map[string]struct{}{},
	}
	decided, ended := t.Status.Decided()
	for _, topic := range t.Topics {
		for _, name := range namesOf(topic) {
			m.Produced[name] = transactionInBuffer{Aborted: ended && decided == txn.Abort}
		}
	}
	for _, p := range t.Subscribed {
		for _, name := range namesOf(p.Topic) {
			if m.Acked[name] == nil {
				m.Acked[name] = map[string]struct{}{}
			}
			m.Acked[name][p.Subscription] = struct{}{}
		}
	}
	return m
}

// namesOf are the names under which a client may have registered a topic: the full one and, in public/default, the short one.
// Pulsar answers what was registered, which a coordinator here does not keep.
func namesOf(topic string) []string {
	if short, ok := strings.CutPrefix(topic, "persistent://public/default/"); ok {
		return []string{topic, short}
	}
	return []string{topic}
}

func (c *call) transactionID() (txn.ID, error) {
	id, err := txn.ParseID(c.PathValue("most") + "," + c.PathValue("least"))
	if err != nil {
		return id, &refusal{http.StatusBadRequest, err.Error()}
	}
	if id.Most >= c.h.Transactions.Count() {
		return id, &refusal{http.StatusNotFound, fmt.Sprintf("Transaction coordinator with id %d not found!", id.Most)}
	}
	return id, nil
}

// transactionMetadata answers a transaction that is live, and the outcome of one that has ended as long as it is kept.
func (h *handler) transactionMetadata(c *call) (any, error) {
	id, err := c.transactionID()
	if err != nil {
		return nil, err
	}
	found, err := h.Transactions.Describe(c.Context(), id)
	var unknown *txn.NotFoundError
	if errors.As(err, &unknown) {
		return nil, &refusal{http.StatusNotFound, fmt.Sprintf("The transaction with this txdID `%s`not found ", id)}
	}
	if err != nil {
		return nil, err
	}
	return shownTransaction(found), nil
}

// mostSlow bounds a list of slow transactions.
const mostSlow = 10_000

func (h *handler) slowTransactions(c *call) (any, error) {
	millis, err := c.number("timeout", 0)
	if err != nil {
		return nil, err
	}
	wanted, err := c.coordinatorID()
	if err != nil {
		return nil, err
	}
	slow := func(tc uint64) (map[string]transactionMetadata, error) {
		found, err := h.Transactions.Slow(c.Context(), time.Duration(min(millis, 1<<40))*time.Millisecond, tc, mostSlow)
		shown := map[string]transactionMetadata{}
		for _, t := range found {
			shown[t.ID.String()] = shownTransaction(t)
		}
		return shown, err
	}
	if wanted != nil {
		if err := h.Transactions.LedHere(c.Context(), *wanted); err != nil {
			return nil, err
		}
		return slow(*wanted)
	}
	all := map[string]transactionMetadata{}
	for tc := range h.Transactions.Count() {
		found, err := atLeader(c, tc, slow)
		if err != nil {
			return nil, err
		}
		for id, t := range found {
			if len(all) < mostSlow {
				all[id] = t
			}
		}
	}
	return all, nil
}

// abortTransaction aborts for the operator. Unlike Pulsar it says 404 for an unknown transaction and 409 for one that is
// decided (TC-27).
func (h *handler) abortTransaction(c *call) (any, error) {
	id, err := c.transactionID()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	return nil, h.Transactions.Abort(ctx, id, c.caller)
}

// mostCoordinators is the largest initialNumTransactionCoordinators.
const mostCoordinators = 4096

// scaleCoordinators makes more coordinators. Their number never shrinks.
func (h *handler) scaleCoordinators(c *call) (any, error) {
	var wanted uint64
	if err := c.need(&wanted); err != nil {
		return nil, err
	}
	if wanted > mostCoordinators {
		return nil, &refusal{http.StatusNotAcceptable, fmt.Sprintf("%d transaction coordinators: at most %d", wanted, mostCoordinators)}
	}
	err := h.Transactions.Grow(c.Context(), wanted)
	if errors.Is(err, txn.ErrNotAllowed) {
		return nil, &refusal{http.StatusNotAcceptable, fmt.Sprintf("Number of transaction coordinators should be more than the current number of transaction coordinator %d", h.Transactions.Count())}
	}
	return nil, err
}
