package txn

// Op says what a log record does. The first four numbers are Pulsar's, the others are this product's.
//
// Source: PulsarTransactionMetadata.proto, TransactionMetadataEntry.TransactionMetadataOp.
type Op uint8

// The record kinds.
const (
	OpNew             Op = 0
	OpAddPartition    Op = 1
	OpAddSubscription Op = 2
	OpUpdate          Op = 3
	// OpSnapshot is the whole state of a live transaction and replaces everything read of it before.
	OpSnapshot Op = 16
	// OpResolve declares participants done by an operator's word (Who, When).
	OpResolve Op = 17
	// OpOutcome is one kept outcome, carried to the head of the log when the record that made it was rolled away.
	OpOutcome Op = 18
	// OpForget ends the outcomes of one owner and client name up to a place: a coordinator that has answered that it does not
	// know them goes on not knowing them.
	OpForget Op = 19
)

// Record is one record of a coordinator's log. Which fields count depends on Op:
//
//	NEW                Least, Owner, ClientName, StartTime, TimeoutMillis
//	ADD_PARTITION      Least, Participants (all Partition)
//	ADD_SUBSCRIPTION   Least, Participants (all AckedSubscription)
//	UPDATE             Least, Expected, Status; if Status is final also Owner, ClientName, StartTime, TimeoutMillis, Place
//	SNAPSHOT           Least, Owner, ClientName, StartTime, TimeoutMillis, Status, Participants, Done
//	RESOLVE            Least, Participants, Who
//	FORGET             Owner, ClientName, Place, Change
//	OUTCOME            Least, Status, Owner, ClientName, StartTime, TimeoutMillis, Place, Time = when it ended
//
// Time is the moment the record was made, milliseconds since the epoch, in every record.
type Record struct {
	Op            Op
	Expected      Status
	Status        Status
	TimedOut      bool // UPDATE to ABORTING: by the deadline, not by a client
	Least         uint64
	StartTime     int64  // ms since the epoch at which NEW was accepted
	TimeoutMillis uint64 // ttl, ms
	Time          int64  // ms since the epoch
	Place         uint64 // rank of an outcome among all of its coordinator, never reused, 0: not kept; FORGET: the last that is forgotten
	// Change is the rank that a FORGET of a client name has itself among the outcomes; 0 without a name. It equals Place if
	// nothing of the name is left.
	Change       uint64
	Owner        Owner
	ClientName   string // empty: unnamed
	Who          string // operator that resolved
	Participants []Participant
	Done         []Participant // SNAPSHOT: participants declared done by an operator
}

// Owner is the role that opened a transaction. The zero Owner is nobody: authentication was off.
type Owner struct {
	Role  string
	Known bool
}
