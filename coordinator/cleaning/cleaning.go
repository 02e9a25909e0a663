package cleaning

import "github.com/pulsar-tc/pulsar-tc/txn"

// EntryOverhead is what one log entry costs the store besides its value, in bytes: its key, and its place in etcd's index.
const EntryOverhead = 256

// Slack is the size of a log that is usually not worth cleaning, in bytes.
const Slack = 1 << 20

// Due reports whether less than half of a log is live, slack bytes not counted. cost counts EntryOverhead for each entry. Cleaning a whole log then
// writes no more than it frees, whatever the mix of short and long transactions.
func Due(cost, live, slack int64) bool { return cost > 2*live+slack }

// State is what the state machine knows of the transactions in a prefix.
type State interface {
	// Snapshot returns the SNAPSHOT of a live transaction if a record before index end still carries its state.
	Snapshot(least, end uint64) (txn.Record, bool)
	// Outcome returns the OUTCOME of an ended transaction that is still held.
	Outcome(least uint64) (txn.Record, bool)
}

// Carry calls write with what of prefix must be written again before the entries below end are dropped, until write reports that it
// is full. Each transaction is carried once. write may change what state answers. It returns the index below which nothing is left to
// be carried.
func Carry(prefix []txn.LogEntry, end uint64, state State, write func(txn.Record) (full bool)) uint64 {
	carried := map[uint64]struct{}{}
	for _, entry := range prefix {
		for i := range entry.Records {
			least := entry.Records[i].Least
			if _, done := carried[least]; done {
				continue
			}
			record, ok := state.Snapshot(least, end)
			if !ok && holdsOutcome(&entry.Records[i]) {
				record, ok = state.Outcome(least)
			}
			if !ok {
				continue
			}
			carried[least] = struct{}{}
			if write(record) {
				return entry.Index
			}
		}
	}
	return end
}

func holdsOutcome(r *txn.Record) bool {
	return r.Op == txn.OpOutcome || r.Op == txn.OpUpdate && r.Status.Final()
}
