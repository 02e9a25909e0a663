package failpoint

import (
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// Kind is a kind of store effect.
type Kind string

// The effects of a coordinator.
const (
	Leader   Kind = "LEADER"   // the leader key is created
	Load     Kind = "LOAD"     // the log is read
	Log      Kind = "LOG"      // anything is appended to the log
	New      Kind = "NEW"      // a transaction is opened
	Add      Kind = "ADD"      // participants are registered
	Decision Kind = "END"      // a decision, with or without its outcome
	Terminal Kind = "TERMINAL" // an outcome
	Settle   Kind = "SETTLE"   // a decision, its outcome, and what participants have of it
	Rolling  Kind = "ROLLING"  // the oldest part of the log is dropped
)

// The effects of a topic.
const (
	TopicLoad   Kind = "TOPIC_LOAD"   // the owner key is put
	Subscribe   Kind = "SUBSCRIBE"    // a subscription is created
	Plain       Kind = "PLAIN"        // messages outside transactions
	Send        Kind = "SEND"         // messages in transactions
	Ack         Kind = "ACK"          // acknowledgements in transactions
	PlainAck    Kind = "PLAIN_ACK"    // acknowledgements outside transactions
	TopicCommit Kind = "TOPIC_COMMIT" // END_TXN_ON_PARTITION is applied, not by Settle
	TopicAbort  Kind = "TOPIC_ABORT"
	AckCommit   Kind = "ACK_COMMIT" // a cursor has what transactions acknowledged
	AckAbort    Kind = "ACK_ABORT"
	Terminate   Kind = "TERMINATE"    // a topic is closed to writers
	Delete      Kind = "TOPIC_DELETE" // a topic goes, with all its partitions
)

// kindsOf names everything that one etcd transaction does.
func kindsOf(ops []clientv3.Op) []Kind {
	var e effects
	for _, op := range ops {
		e.op(op)
	}
	return e.kinds()
}

// effects collects what the operations of one transaction do.
type effects struct {
	found                                                            []Kind
	subscriptionEnds, cursorWrites, txnEnds, entriesDropped, settles bool
}

func (e *effects) add(kind Kind) {
	if !slices.Contains(e.found, kind) {
		e.found = append(e.found, kind)
	}
}

func (e *effects) op(op clientv3.Op) {
	key := string(op.KeyBytes())
	if _, below, ok := strings.Cut(key, "/tc/"); ok {
		if _, rest, ok := strings.Cut(below, "/"); ok {
			e.coordinator(op, rest)
		}
		return
	}
	if op.IsPut() && strings.Contains(key, "/topics/deleted/") {
		e.add(Delete)
		return
	}
	if _, below, ok := strings.Cut(key, "/topics/data/"); ok {
		if _, rest, ok := strings.Cut(below, "/"); ok {
			e.topic(op, rest)
		}
	}
}

// coordinator looks at an operation on a key of a coordinator. rest is what follows its prefix.
func (e *effects) coordinator(op clientv3.Op, rest string) {
	inLog := strings.HasPrefix(rest, "log/")
	switch {
	case op.IsPut() && rest == "leader":
		e.add(Leader)
	case op.IsGet() && inLog:
		e.add(Load)
	case op.IsDelete() && inLog:
		e.add(Rolling)
	case op.IsPut() && inLog:
		e.add(Log)
		e.records(op.ValueBytes())
	}
}

// records looks into a log value. One that nobody can read is none of the kinds that need it.
func (e *effects) records(value []byte) {
	var decoder txnlog.Decoder
	records, err := decoder.Decode("", value)
	if err != nil {
		return
	}
	for i := range records {
		switch r := &records[i]; r.Op {
		case txn.OpNew:
			e.add(New)
		case txn.OpAddPartition, txn.OpAddSubscription:
			e.add(Add)
		case txn.OpUpdate:
			if r.Expected == txn.Open {
				e.add(Decision)
			}
			if r.Status.Final() {
				e.add(Terminal)
			}
		}
	}
}

// topic looks at an operation on a key of a topic. rest is what follows its prefix.
func (e *effects) topic(op clientv3.Op, rest string) {
	switch {
	case op.IsPut() && rest == "owner":
		e.add(TopicLoad)
	case op.IsPut() && rest == "m/terminated":
		e.add(Terminate)
	case op.IsPut() && strings.HasPrefix(rest, "e/"):
		if strings.Contains(rest, ".") {
			e.add(Send)
		} else {
			e.add(Plain)
		}
	case op.IsDelete() && strings.HasPrefix(rest, "e/") && strings.Contains(rest, "."):
		e.entriesDropped = true
	case op.IsDelete() && strings.HasPrefix(rest, "m/txn/"):
		e.txnEnds = true
	case strings.HasPrefix(rest, "m/sub/"):
		if _, below, ok := strings.Cut(strings.TrimPrefix(rest, "m/sub/"), "/"); ok {
			e.subscription(op, below)
		}
	}
}

func (e *effects) subscription(op clientv3.Op, rest string) {
	pending := strings.HasPrefix(rest, "pending/")
	switch {
	case op.IsPut() && rest == "name":
		e.add(Subscribe)
	case op.IsPut() && pending && strings.HasSuffix(rest, "/committed"):
		e.settles = true
	case op.IsPut() && pending:
		e.add(Ack)
	case op.IsDelete() && pending:
		e.subscriptionEnds = true
	case op.IsPut():
		e.cursorWrites = true
	}
}

func (e *effects) kinds() []Kind {
	switch {
	case e.settles, e.txnEnds && slices.Contains(e.found, Log):
		e.add(Settle)
	case e.txnEnds && e.entriesDropped:
		e.add(TopicAbort)
	case e.txnEnds:
		e.add(TopicCommit)
	}
	switch {
	case e.subscriptionEnds && e.cursorWrites:
		e.add(AckCommit)
	case e.subscriptionEnds:
		e.add(AckAbort)
	case e.cursorWrites && !slices.Contains(e.found, Subscribe):
		e.add(PlainAck)
	}
	return e.found
}
