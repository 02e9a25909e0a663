package history

import (
	"maps"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// History collects operations. Its methods may be called from anywhere.
type History struct {
	began time.Time

	mu         sync.Mutex // guards the following
	skew       time.Duration
	opens      []Open
	ends       []End
	uses       []Use
	looks      []Look
	decisions  []Decision
	deliveries []Delivery
	messages   []Message
	acks       []Ack
	read       map[string][]string
	left       map[place][]string
	live       []txn.ID
	listed     bool
}

// place is a subscription of a topic.
type place struct{ topic, subscription string }

// New starts an empty history.
func New() *History {
	return &History{began: time.Now(), skew: clockSlack, read: map[string][]string{}, left: map[place][]string{}}
}

// Now is the time since the history began, for a Span.
func (h *History) Now() time.Duration { return time.Since(h.began) }

// clockSlack is how much earlier than its time to live a transaction may time out: a server counts in whole milliseconds of
// the wall clock, a history by the monotonic one.
const clockSlack = 50 * time.Millisecond

// Skew says how far the clocks of servers may be before the history's, at any time. Deadlines and retentions may pass so much
// earlier.
func (h *History) Skew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew = clockSlack + d
}

// Opened records a transaction.
func (h *History) Opened(op Open) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opens = append(h.opens, op)
}

// Ended records an END_TXN.
func (h *History) Ended(op End) {
	if op.Answer == Unknown {
		op.Return = Never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = append(h.ends, op)
}

// Used records a use.
func (h *History) Used(op Use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses = append(h.uses, op)
}

// Saw records a look that was answered.
func (h *History) Saw(op Look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = append(h.looks, op)
}

// Told records that a participant was told of a decision.
func (h *History) Told(op Decision) {
	if op.Answer == Unknown {
		op.Return = Never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decisions = append(h.decisions, op)
}

// Delivered records that somebody got a message, before the end.
func (h *History) Delivered(d Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliveries = append(h.deliveries, d)
}

// Sent records a message.
func (h *History) Sent(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = append(h.messages, m)
}

// Acked records an acknowledgement.
func (h *History) Acked(a Ack) {
	a.recorded = h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks = append(h.acks, a)
}

// Read records everything that a reader of topic got from earliest, in the end.
func (h *History) Read(topic string, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read[topic] = keys
}

// Left records everything that a subscription still delivered in the end.
func (h *History) Left(topic, subscription string, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left[place{topic, subscription}] = keys
}

// Live records which transactions had not ended in the end.
func (h *History) Live(ids []txn.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live, h.listed = ids, true
}

// Topics are all topics that messages were sent to, each once, in order of first use.
func (h *History) Topics() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var topics []string
	seen := map[string]bool{}
	for _, m := range h.messages {
		if !seen[m.Topic] {
			seen[m.Topic] = true
			topics = append(topics, m.Topic)
		}
	}
	return topics
}

// Transactions are all ids, each once, in order of their answers.
func (h *History) Transactions() []txn.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []txn.ID
	seen := map[txn.ID]bool{}
	for _, op := range h.opens {
		if !seen[op.ID] {
			seen[op.ID] = true
			ids = append(ids, op.ID)
		}
	}
	return ids
}

// Counts says how much was recorded.
func (h *History) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := Counts{Opened: len(h.opens), Ends: len(h.ends), Messages: len(h.messages), Acks: len(h.acks)}
	outcomes := h.answered()
	for _, op := range h.opens {
		switch outcomes[op.ID] {
		case txn.Committed:
			c.Committed++
		case txn.Aborted:
			c.Aborted++
		}
	}
	for _, op := range h.ends {
		if op.Answer == Unknown {
			c.UnknownEnds++
		}
	}
	return c
}

// Counts is how much a history holds.
type Counts struct {
	Opened, Committed, Aborted int
	Ends, UnknownEnds          int
	Messages, Acks             int
}

// answered is the first definite outcome of each transaction that a client was told.
func (h *History) answered() map[txn.ID]txn.Status {
	outcomes := make(map[txn.ID]txn.Status, len(h.opens))
	for _, op := range h.ends {
		if _, known := outcomes[op.ID]; known {
			continue
		}
		switch op.Answer {
		case Done:
			outcomes[op.ID] = op.Action.Decided()
		case Contrary:
			outcomes[op.ID] = opposite(op.Action).Decided()
		}
	}
	return outcomes
}

// decided is the outcome of each transaction that anybody was told, clients first, then participants.
func (h *History) decided(answered map[txn.ID]txn.Status) map[txn.ID]txn.Status {
	outcomes := maps.Clone(answered)
	for _, op := range h.looks {
		if action, yes := op.Status.Decided(); yes && op.Known {
			learn(outcomes, op.ID, action)
		}
	}
	for _, op := range h.decisions {
		learn(outcomes, op.ID, op.Action)
	}
	return outcomes
}

func learn(outcomes map[txn.ID]txn.Status, id txn.ID, action txn.Action) {
	if _, known := outcomes[id]; !known {
		outcomes[id] = action.Decided()
	}
}

func opposite(action txn.Action) txn.Action {
	if action == txn.Commit {
		return txn.Abort
	}
	return txn.Commit
}
