package coordinator

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Options are what the coordinators of one process share.
type Options struct {
	// Machine are the limits of each coordinator; TC is filled in.
	Machine fsm.Options
	// LoadWait is how long a request waits for a coordinator that is loading.
	LoadWait time.Duration
	// TooManyPause holds back the answer TooManyRequests, so that it slows a retrying client down (TC-25).
	TooManyPause time.Duration
	// EndWait, if not 0, answers an END_TXN that waits so long with ErrNotReady; the drive goes on (TC-16).
	EndWait time.Duration
	// ExpireInterval is the pause between passes that forget outcomes.
	ExpireInterval time.Duration
	// MaxBatch is how many commands one group commit takes at most. It takes no more, too, when so many changes are to be written, or open
	// keys to be put or deleted.
	MaxBatch int
	// MaxDrives is how many participant calls of one coordinator are in flight at most.
	MaxDrives int
	// RetryFirst and RetryCeiling bound the pause between attempts at one participant (TC-15).
	RetryFirst, RetryCeiling time.Duration
	// Relay takes requests to coordinators that were handed over. Nil: they are answered ErrCoordinatorNotFound.
	Relay Relay
	// Jitter draws a pause from 0 to most, so that what failed together is not repeated together. nil means at random.
	Jitter func(most time.Duration) time.Duration
	// GiveUp is for how long no term of this process may last, because its loads or its writes fail, before it leaves the
	// coordinator to others for GiveUpFor; 0: never.
	GiveUp, GiveUpFor time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Events hear what happens; nil fields are skipped.
	Events Events
}

// Events is what operators and metrics hear of. Every func may be nil, must not block, and is called from the coordinator's
// goroutine.
type Events struct {
	TermBegan       func(tc uint64, term int64, transactions, outcomes int, took time.Duration)
	TermEnded       func(tc uint64, term int64, cause error)
	LoadFailed      func(tc uint64, err error)
	ClockBehind     func(tc uint64, by time.Duration)
	Created         func(tc uint64)
	Ended           func(tc uint64, action txn.Action, timedOut bool, open time.Duration)
	Expired         func(tc uint64, id txn.ID)
	Contrary        func(tc uint64, id txn.ID, asked txn.Action)
	Resolved        func(tc uint64, id txn.ID, participant txn.Participant, who string)
	Appended        func(tc uint64, changes, bytes int, took time.Duration)
	DriveFailed     func(tc uint64, id txn.ID, participant txn.Participant, err error)
	RequestRejected func(tc uint64, err error)
	// OutcomesChanged hears of each durable change of the outcomes of a client name, in order of place, and at a load again
	// of those that the log still tells of.
	OutcomesChanged func(tc uint64, change OutcomeChange)
}

// OutcomeChange says that the outcomes of a client name changed.
type OutcomeChange struct {
	Key     preserver.Key
	Place   uint64 // larger than all before; never reused
	Millis  int64  // since the epoch: when the newest outcome of the coordinator ended
	Emptied bool   // none is left
}

// DefaultOptions are the values used where the configuration says nothing.
func DefaultOptions() Options {
	return Options{
		LoadWait:       20 * time.Second,
		TooManyPause:   time.Second,
		ExpireInterval: 300 * time.Second,
		MaxBatch:       1024,
		MaxDrives:      1000,
		RetryFirst:     100 * time.Millisecond,
		RetryCeiling:   10 * time.Second,
	}
}
