package history

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Kind is a kind of broken promise.
type Kind string

const (
	Contradiction  Kind = "answers contradict each other"
	IDRepeated     Kind = "id given twice"
	IDNotGrowing   Kind = "id smaller than an earlier one"
	NeverIssued    Kind = "operation on an id that was never given"
	NoOutcome      Kind = "no outcome in the end"
	StillLive      Kind = "still live in the end"
	NotListed      Kind = "nobody asked which transactions are live in the end"
	NotRead        Kind = "nobody read it in the end"
	MessageLost    Kind = "message lost"
	MessageTwice   Kind = "message there more than once"
	AbortedSeen    Kind = "message of an aborted transaction seen"
	RefusedSeen    Kind = "refused message seen"
	Invented       Kind = "message seen that nobody sent"
	DeliveredAgain Kind = "acknowledged message delivered again"
	NotReturned    Kind = "message gone from the subscription without an acknowledgement"
	AckedTwice     Kind = "message acknowledged in two committed transactions"
)

// Anomaly is one broken promise.
type Anomaly struct {
	Kind   Kind
	Txn    txn.ID // zero: about no transaction
	Topic  string // empty: about no topic
	Detail string
}

func (a Anomaly) String() string {
	text := string(a.Kind)
	if a.Txn != (txn.ID{}) {
		text += fmt.Sprintf(": transaction %s", a.Txn)
	}
	if a.Topic != "" {
		text += ": " + a.Topic
	}
	return text + ": " + a.Detail
}

// Check returns every broken promise. It is called when the history is complete.
func (h *History) Check() []Anomaly {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []Anomaly
	found = append(found, h.checkIDs()...)
	found = append(found, h.checkAnswers()...)
	found = append(found, h.checkEnds()...)
	outcomes := h.outcomes()
	found = append(found, h.checkMessages(outcomes)...)
	return append(found, h.checkSubscriptions(outcomes)...)
}

// checkEnds holds promise 6.
func (h *History) checkEnds() []Anomaly {
	var found []Anomaly
	if !h.listed {
		found = append(found, Anomaly{Kind: NotListed})
	}
	for _, id := range h.live {
		found = append(found, Anomaly{Kind: StillLive, Txn: id})
	}
	return found
}
