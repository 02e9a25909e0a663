package txnlog

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// Version is the layout that this build writes and the only one it reads.
	Version = 1

	versionSize  = 1
	checksumSize = 4
	headerSize   = versionSize + checksumSize
)

// Fields of BatchedTransactionMetadataEntry.
const (
	fieldRecord   protowire.Number = 1
	fieldBaseTime protowire.Number = 32
)

// Fields of TransactionMetadataEntry.
const (
	fieldOp                protowire.Number = 1
	fieldLeast             protowire.Number = 2
	fieldExpected          protowire.Number = 4
	fieldStatus            protowire.Number = 5
	fieldPartition         protowire.Number = 6
	fieldSubscription      protowire.Number = 7
	fieldTimeout           protowire.Number = 8
	fieldOwner             protowire.Number = 12
	fieldClientName        protowire.Number = 13
	fieldPlace             protowire.Number = 32
	fieldTimedOut          protowire.Number = 33
	fieldTime              protowire.Number = 34
	fieldStart             protowire.Number = 35
	fieldWho               protowire.Number = 36
	fieldDonePartition     protowire.Number = 37
	fieldDoneSubscription  protowire.Number = 38
	fieldChange            protowire.Number = 39
	largestField                            = fieldChange
	fieldSubscriptionTopic protowire.Number = 1
	fieldSubscriptionName  protowire.Number = 2
)

// fieldSet is a set of fields of TransactionMetadataEntry, bit n for field n.
type fieldSet uint64

func fields(numbers ...protowire.Number) fieldSet {
	var s fieldSet
	for _, n := range numbers {
		s |= 1 << n
	}
	return s
}

var (
	always  = fields(fieldOp, fieldLeast, fieldTime)
	owning  = fields(fieldOwner, fieldClientName)
	opening = owning | fields(fieldStart, fieldTimeout)

	ofNew             = always | opening
	ofAddPartition    = always | fields(fieldPartition)
	ofAddSubscription = always | fields(fieldSubscription)
	ofUpdate          = always | fields(fieldExpected, fieldStatus, fieldTimedOut)
	ofEnd             = ofUpdate | opening | fields(fieldPlace)
	ofSnapshot        = always | opening | fields(fieldStatus, fieldTimedOut, fieldPartition, fieldSubscription,
		fieldDonePartition, fieldDoneSubscription)
	ofResolve = always | fields(fieldPartition, fieldSubscription, fieldWho)
	ofOutcome = always | opening | fields(fieldStatus, fieldPlace, fieldTimedOut)
	ofForget  = fields(fieldOp, fieldTime, fieldPlace, fieldChange) | owning
)

// fieldsOf is what a record may hold; false if its op is unknown.
func fieldsOf(r *txn.Record) (fieldSet, bool) {
	switch r.Op {
	case txn.OpNew:
		return ofNew, true
	case txn.OpAddPartition:
		return ofAddPartition, true
	case txn.OpAddSubscription:
		return ofAddSubscription, true
	case txn.OpUpdate:
		if r.Status.Final() {
			return ofEnd, true
		}
		return ofUpdate, true
	case txn.OpSnapshot:
		return ofSnapshot, true
	case txn.OpResolve:
		return ofResolve, true
	case txn.OpOutcome:
		return ofOutcome, true
	case txn.OpForget:
		return ofForget, true
	}
	return 0, false
}
