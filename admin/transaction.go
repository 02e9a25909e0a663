package admin

import (
	"context"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Transaction is what an operator sees of one transaction, in JSON.
type Transaction struct {
	ID            string        `json:"id"` // (most,least)
	State         string        `json:"state"`
	Owner         string        `json:"owner,omitempty"`
	ClientName    string        `json:"clientName,omitempty"`
	OpenedAt      time.Time     `json:"openedAt"`
	DeadlineAt    time.Time     `json:"deadlineAt"`
	TimeoutMillis uint64        `json:"timeoutMillis"`
	EndedAt       *time.Time    `json:"endedAt,omitempty"` // absent: live
	TimedOut      bool          `json:"timedOut,omitempty"`
	Reason        string        `json:"reason,omitempty"`       // why it cannot end now, if that is not a participant's failure
	Participants  []Participant `json:"participants,omitempty"` // of live ones
}

// Participant is one topic or subscription that a live transaction wrote to, and what it still waits for there.
type Participant struct {
	Topic        string `json:"topic"`
	Subscription string `json:"subscription,omitempty"`
	State        string `json:"state"` // registered, waiting, applied or resolved
	Attempts     int    `json:"attempts,omitempty"`
	Failure      string `json:"failure,omitempty"` // of the last attempt
}

// Filter chooses live transactions. Zero fields choose all.
type Filter struct {
	OlderThan  time.Duration
	State      string
	ClientName string
	Limit      int
}

// Transactions answers for the coordinators. Errors are package txn's.
type Transactions interface {
	// List has those of the coordinators that are led here.
	List(ctx context.Context, filter Filter) ([]Transaction, error)
	// Describe and Resolve are about a coordinator that is led here. Errors: *ElsewhereError if it is not.
	Describe(ctx context.Context, id txn.ID) (Transaction, error)
	// Resolve declares a participant done; operator is written to the log.
	Resolve(ctx context.Context, id txn.ID, participant txn.Participant, operator string) error
}

// Coordinator is the health of one coordinator, in JSON.
type Coordinator struct {
	ID           uint64  `json:"id"`
	Serving      bool    `json:"serving"`
	Reason       string  `json:"reason,omitempty"` // why it does not serve
	Term         int64   `json:"term,omitempty"`
	Transactions int     `json:"transactions"`
	Outcomes     int     `json:"outcomes"`
	LastIssued   uint64  `json:"lastIssued"`
	LoadSeconds  float64 `json:"loadSeconds,omitempty"`
}

// Health is the state of the process, in JSON.
type Health struct {
	Healthy      bool          `json:"healthy"`
	Transactions bool          `json:"transactionsEnabled"`
	Store        string        `json:"store"`        // normal, what it refuses for lack of space, why it is away, or what its layout lacks
	Coordinators []Coordinator `json:"coordinators"` // those that this process leads or is to lead
	Instances    []Instance    `json:"instances"`    // that share the store, this one among them
}

// Instance is a process, in JSON.
type Instance struct {
	ID            string    `json:"id"`
	Self          bool      `json:"self,omitempty"` // the one that answers
	ServiceURL    string    `json:"serviceUrl,omitempty"`
	ServiceURLTLS string    `json:"serviceUrlTls,omitempty"`
	WebURL        string    `json:"webUrl,omitempty"`
	WebURLTLS     string    `json:"webUrlTls,omitempty"`
	Version       string    `json:"version,omitempty"`
	StartedAt     time.Time `json:"startedAt,omitzero"`
	// ClockAheadSeconds is how far its clock is ahead of that of the one that answers; absent: not known.
	ClockAheadSeconds *float64 `json:"clockAheadSeconds,omitempty"`
}
