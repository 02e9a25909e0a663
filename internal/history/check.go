package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Kind is a kind of broken promise.
type Kind string

// Of one transaction as clients and participants saw it.
const (
	ChangedMind       Kind = "changed its mind"
	Resurrection      Kind = "resurrected: known to be past it, then back"
	ContraryDecisions Kind = "participants were told the contrary"
	AbortedRead       Kind = "message seen of a transaction that was not committed"
	Unasked           Kind = "decided though nobody asked and no deadline had passed"
	ForgottenEarly    Kind = "outcome forgotten before its retention"
	Contradiction     Kind = "answers contradict each other"
	IDRepeated        Kind = "id given twice"
	IDNotGrowing      Kind = "id smaller than an earlier one"
	NeverIssued       Kind = "operation on an id that was never given"
	NotDone           Kind = "success before it was done"
	NoOutcome         Kind = "no outcome in the end"
	Stuck             Kind = "still live in the end"
	NotListed         Kind = "nobody asked which transactions are live in the end"
)

// Of what was sent, read and acknowledged.
const (
	Torn           Kind = "torn: some messages of a transaction are there, some are not"
	LostCommit     Kind = "messages of a committed transaction lost"
	NotRead        Kind = "nobody read it in the end"
	MessageLost    Kind = "message lost"
	MessageTwice   Kind = "message there more than once"
	Vanished       Kind = "message seen once, then gone"
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
	Detail string // the reason, and what was seen of the transaction
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

// Check returns every broken promise, in an order that depends on the history alone. It is called when the history is complete.
func (h *History) Check() []Anomaly {
	h.mu.Lock()
	defer h.mu.Unlock()
	accounts, found := h.accounts()
	answered := h.answered()
	outcomes := h.decided(answered)
	found = append(found, h.checkIDs()...)
	found = append(found, checkAnswers(accounts)...)
	found = append(found, checkOutcomes(accounts, answered, h.forgotten())...)
	found = append(found, h.checkDone(accounts)...)
	found = append(found, h.checkEnds()...)
	found = append(found, h.checkMessages(accounts, outcomes)...)
	found = append(found, h.checkSubscriptions(outcomes)...)
	slices.SortFunc(found, func(a, b Anomaly) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Txn.Most, b.Txn.Most), cmp.Compare(a.Txn.Least, b.Txn.Least),
			cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Detail, b.Detail))
	})
	return found
}

// checkEnds holds promise 6.
func (h *History) checkEnds() []Anomaly {
	var found []Anomaly
	if !h.listed {
		found = append(found, Anomaly{Kind: NotListed})
	}
	for _, id := range h.live {
		found = append(found, Anomaly{Kind: Stuck, Txn: id})
	}
	return found
}
