package crashpoint

import (
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Use is what a transaction does with one participant.
type Use uint8

const (
	Unused       Use = iota
	Added            // ADD registers it, and nothing is written there
	Written          // SEND or ACK, which registers it
	AddedWritten     // ADD, then SEND or ACK
)

// The participants: two topics that are sent to, and a subscription whose messages are acknowledged.
const (
	firstTopic = iota
	secondTopic
	subscription
	participantCount
)

// Way is how a transaction comes to its end.
type Way uint8

const (
	ByCommit Way = iota
	ByAbort
	ByTimeout // nobody ends it before its deadline
)

// Then is what the client asks when it has been answered, or at once.
type Then uint8

const (
	Nothing  Then = iota
	Again         // the same, of a timeout an abort
	Contrary      // the opposite
)

// Ending is how one transaction ends, and what is asked besides.
type Ending struct {
	Way  Way
	Then Then
	// AtOnce says that the second END does not wait for the answer of the first, of a timeout that it is asked just when the
	// deadline passes.
	AtOnce bool
}

// Plan is what one client does with one transaction.
type Plan struct {
	Uses   [participantCount]Use
	Ending Ending
}

func (p Plan) String() string {
	var uses strings.Builder
	for i, use := range p.Uses {
		uses.WriteString([]string{"", "+", "!", "+!"}[use])
		if use != Unused {
			uses.WriteString([]string{"a", "b", "s"}[i])
		}
	}
	ending := []string{"commit", "abort", "timeout"}[p.Ending.Way]
	if p.Ending.Then != Nothing {
		ending += []string{" then", " with"}[asInt(p.Ending.AtOnce)] + []string{"", " again", " contrary"}[p.Ending.Then]
	}
	return fmt.Sprintf("[%s %s]", &uses, ending)
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kind is a kind of client operation.
type kind uint8

const (
	opNew kind = iota
	opAdd
	opWrite
	opEnd
	opDeadline // wait until the deadline has passed
	opNearly   // wait until it is about to pass
)

// operation is one thing that a client does.
type operation struct {
	kind        kind
	transaction int
	participant int
	action      txn.Action
}

// beginning is everything before the end, an operation at a time.
func (p Plan) beginning(transaction int) []operation {
	ops := []operation{{kind: opNew, transaction: transaction}}
	for i, use := range p.Uses {
		if use == Added || use == AddedWritten {
			ops = append(ops, operation{kind: opAdd, transaction: transaction, participant: i})
		}
		if use == Written || use == AddedWritten {
			ops = append(ops, operation{kind: opWrite, transaction: transaction, participant: i})
		}
	}
	return ops
}

// end is the rounds of its end: what is in one is asked at once.
func (p Plan) end(transaction int) [][]operation {
	action := txn.Commit
	if p.Ending.Way != ByCommit {
		action = txn.Abort
	}
	first := operation{kind: opEnd, transaction: transaction, action: action}
	if p.Ending.Way == ByTimeout {
		first.kind = opDeadline
		if p.Ending.AtOnce {
			first.kind = opNearly
		}
	}
	if p.Ending.Then == Nothing {
		return [][]operation{{first}}
	}
	second := operation{kind: opEnd, transaction: transaction, action: action}
	if p.Ending.Then == Contrary {
		second.action = opposite(action)
	}
	if p.Ending.AtOnce && first.kind == opEnd {
		return [][]operation{{first, second}}
	}
	return [][]operation{{first}, {second}}
}

func opposite(action txn.Action) txn.Action {
	if action == txn.Commit {
		return txn.Abort
	}
	return txn.Commit
}
