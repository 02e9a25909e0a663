package history

import (
	"slices"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

const second = time.Second

// at is a span in seconds.
func at(call, answered float64) Span {
	return Span{"client", time.Duration(call * float64(second)), time.Duration(answered * float64(second))}
}

var one, two = txn.ID{Least: 1}, txn.ID{Least: 2}

// opened is a history with transaction one, asked for at 0 s and answered at 1 s, time to live 10 s, outcome kept for 100 s.
func opened() *History {
	h := New()
	h.Opened(Open{at(0, 1), one, 10 * second, 100 * second})
	h.Live(nil)
	return h
}

func end(call, answered float64, action txn.Action, answer Answer) End {
	return End{at(call, answered), one, action, answer}
}

// committedHistory is opened, and transaction one committed.
func committedHistory() *History {
	h := opened()
	h.Ended(end(2, 3, txn.Commit, Done))
	return h
}

func abortedHistory() *History {
	h := opened()
	h.Ended(end(2, 3, txn.Abort, Done))
	return h
}

func inTxn(topic, key string, answer Answer) Message {
	return Message{Topic: topic, Key: key, Txn: one, InTxn: true, Answer: answer}
}

func plain(key string, answer Answer) Message { return Message{Topic: "t", Key: key, Answer: answer} }

func throughIn(id txn.ID, key string, answer Answer) Ack {
	a := ackIn(id, key, answer)
	a.Cumulative = true
	return a
}

func ackIn(id txn.ID, key string, answer Answer) Ack {
	return Ack{Topic: "t", Subscription: "s", Key: key, Txn: id, InTxn: true, Answer: answer}
}

// stored is a history with the plain messages a and b of topic t, both read, of which subscription s still holds left.
func stored(h *History, left ...string) *History {
	h.Sent(plain("a", Done))
	h.Sent(plain("b", Done))
	h.Read("t", []string{"a", "b"})
	h.Left("t", "s", left)
	return h
}

func TestGoodHistories(t *testing.T) {
	for name, build := range map[string]func() *History{
		"commit, asked again and against": func() *History {
			h := committedHistory()
			h.Ended(end(4, 5, txn.Commit, Done))
			h.Ended(end(5, 6, txn.Abort, Contrary))
			return h
		},
		"lost answer takes effect later, and tells": func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, Unknown))
			h.Used(Use{at(3, 4), one, "SEND", "", Done})
			h.Ended(end(5, 6, txn.Abort, Contrary))
			return h
		},
		"lost answer never takes effect": func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, Unknown))
			h.Ended(end(4, 5, txn.Abort, Done))
			h.Ended(end(6, 7, txn.Commit, Contrary))
			return h
		},
		"two at once, either wins": func() *History {
			h := opened()
			h.Ended(end(2, 6, txn.Commit, Contrary))
			h.Ended(end(3, 5, txn.Abort, Done))
			return h
		},
		"deadline": func() *History {
			h := opened()
			h.Used(Use{at(9, 12), one, "ADD", "", Refused})
			h.Ended(end(10.5, 11, txn.Commit, Contrary))
			h.Ended(end(12, 13, txn.Abort, Done))
			return h
		},
		"looked at": func() *History {
			h := opened()
			h.Saw(Look{at(1, 2), one, txn.Open, true})
			h.Ended(end(3, 6, txn.Commit, Done))
			h.Saw(Look{at(4, 5), one, txn.Committing, true})
			h.Saw(Look{at(7, 8), one, txn.Committed, true})
			h.Saw(Look{at(101, 102), one, 0, false})
			return h
		},
		"forgotten after its retention": func() *History {
			h := committedHistory()
			h.Ended(end(101, 102, txn.Commit, NotFound))
			return h
		},
		"forgotten without anybody having heard": func() *History {
			h := opened()
			h.Ended(end(101, 102, txn.Commit, NotFound))
			return h
		},
		"ids of two at once in any order": func() *History {
			h := New()
			h.Live(nil)
			for _, op := range []Open{{at(0, 3), two, second, 0}, {at(1, 2), one, second, 0}} {
				h.Opened(op)
				h.Ended(End{at(5, 6), op.ID, txn.Abort, Done})
			}
			return h
		},
		"messages": func() *History {
			h := committedHistory()
			h.Sent(inTxn("t", "a", Done))
			h.Sent(inTxn("u", "b", Done))
			h.Sent(inTxn("u", "c", Unknown))
			h.Sent(plain("d", Done))
			h.Sent(plain("e", Unknown))
			h.Sent(plain("f", Unknown))
			h.Sent(plain("g", Refused))
			h.Sent(Message{Topic: "t", Key: "h", Answer: Done, Repeatable: true})
			h.Read("t", []string{"a", "d", "e", "h", "h"})
			h.Read("u", []string{"b"})
			return h
		},
		"aborted messages": func() *History {
			h := abortedHistory()
			h.Sent(inTxn("t", "a", Done))
			h.Sent(inTxn("t", "b", Unknown))
			h.Read("t", nil)
			return h
		},
		"acknowledged for good": func() *History {
			h := stored(committedHistory(), "b")
			h.Acked(ackIn(one, "a", Done))
			return h
		},
		"acknowledgement given back": func() *History {
			h := stored(abortedHistory(), "a", "b")
			h.Acked(ackIn(one, "a", Done))
			return h
		},
		"acknowledgements without an answer": func() *History {
			h := stored(committedHistory(), "a")
			h.Acked(ackIn(one, "a", Unknown))
			h.Acked(ackIn(one, "b", Unknown))
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range build().Check() {
				t.Errorf("found: %s", a)
			}
		})
	}
}

// pick returns bad in a broken history and good in its neighbour.
func pick[V any](broken bool, bad, good V) V {
	if broken {
		return bad
	}
	return good
}

// anomalies has for every kind histories that show it, each with a neighbour that is right.
var anomalies = map[string]struct {
	want  Kind
	build func(broken bool) *History
}{
	"committed, then aborted": {ChangedMind, func(broken bool) *History {
		h := committedHistory()
		h.Ended(end(4, 5, txn.Abort, pick(broken, Done, Contrary)))
		return h
	}},
	"committed, then said to be aborted": {ChangedMind, func(broken bool) *History {
		h := committedHistory()
		h.Ended(end(4, 5, txn.Commit, pick(broken, Contrary, Done)))
		return h
	}},
	"seen committing, then aborted": {ChangedMind, func(broken bool) *History {
		h := opened()
		h.Saw(Look{at(2, 3), one, pick(broken, txn.Committing, txn.Aborting), true})
		h.Ended(end(1.5, 5, txn.Abort, Done))
		return h
	}},
	"both answers of two at once": {ChangedMind, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 6, txn.Commit, Done))
		h.Ended(end(3, 5, txn.Abort, pick(broken, Done, Contrary)))
		return h
	}},
	"used behind its end": {Resurrection, func(broken bool) *History {
		h := abortedHistory()
		h.Used(Use{at(pick(broken, 4.0, 2.5), 5), one, "SEND", "", Done})
		return h
	}},
	"seen open behind its end": {Resurrection, func(broken bool) *History {
		h := committedHistory()
		h.Saw(Look{at(pick(broken, 4.0, 2.5), 5), one, txn.Open, true})
		return h
	}},
	"not found, then committed": {Resurrection, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 3, txn.Commit, Done))
		h.Ended(end(101, 102, txn.Commit, NotFound))
		h.Ended(end(pick(broken, 103.0, 99), 104, txn.Commit, Done))
		return h
	}},
	"contrary answer to an ADD while its outcome is forgotten": {Resurrection, func(broken bool) *History {
		h := committedHistory()
		h.Ended(end(101, 102, txn.Commit, NotFound))
		h.Used(Use{at(pick(broken, 103.0, 99), 104), one, "ADD", "", Contrary})
		return h
	}},
	"committed, then not found within its retention": {ForgottenEarly, func(broken bool) *History {
		h := committedHistory()
		h.Ended(end(4, pick(broken, 99.0, 101), txn.Commit, NotFound))
		return h
	}},
	"not known while its outcome is kept": {ForgottenEarly, func(broken bool) *History {
		h := committedHistory()
		h.Saw(Look{at(4, pick(broken, 5.0, 101)), one, 0, false})
		return h
	}},
	"an ADD not found while its outcome is kept": {ForgottenEarly, func(broken bool) *History {
		h := committedHistory()
		h.Used(Use{at(4, pick(broken, 5.0, 101)), one, "ADD", "", NotFound})
		return h
	}},
	"not found while open": {Unasked, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, pick(broken, 3.0, 101), txn.Commit, NotFound))
		return h
	}},
	"contrary with nobody who asked for it before the deadline": {Unasked, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, pick(broken, 3.0, 10), txn.Commit, Contrary))
		return h
	}},
	"contrary to what a lost answer can have done": {Unasked, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 3, pick(broken, txn.Commit, txn.Abort), Unknown))
		h.Ended(end(4, 5, txn.Commit, Contrary))
		return h
	}},
	"effect before the request": {Unasked, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 3, txn.Abort, Contrary))
		h.Ended(end(pick(broken, 4.0, 2.5), 5, txn.Commit, Done))
		return h
	}},
	"refused while open": {Unasked, func(broken bool) *History {
		h := opened()
		h.Used(Use{at(1.5, pick(broken, 2.0, 3)), one, "ADD", "", Refused})
		h.Ended(end(3, 4, txn.Commit, Done))
		return h
	}},
	"deadline before its time": {Unasked, func(broken bool) *History {
		h := opened()
		h.Skew(pick(broken, second, 3*second))
		h.Ended(end(7, 8, txn.Commit, Contrary))
		return h
	}},
	"seen before it was asked for": {Contradiction, func(broken bool) *History {
		h := New()
		h.Live(nil)
		h.Opened(Open{at(pick(broken, 2.0, 1), 3), one, 10 * second, 100 * second})
		h.Saw(Look{at(1, 1.5), one, txn.Open, true})
		h.Ended(end(4, 5, txn.Commit, Done))
		return h
	}},
	"two participants told the contrary": {ContraryDecisions, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 3, txn.Commit, Unknown))
		h.Ended(end(2, 3, txn.Abort, Unknown))
		h.Told(told(4, "a", txn.Commit, Done))
		h.Told(told(5, "b", pick(broken, txn.Abort, txn.Commit), Done))
		h.Ended(end(5, 6, txn.Commit, pick(broken, NotFound, Done)))
		if broken {
			h.Skew(200 * second)
		}
		return h
	}},
	"participant told the contrary of the answer": {ContraryDecisions, func(broken bool) *History {
		h := committedHistory()
		h.Told(told(2.5, "a", pick(broken, txn.Abort, txn.Commit), Unknown))
		return h
	}},
	"participant told before anybody asked": {Unasked, func(broken bool) *History {
		h := opened()
		h.Told(told(pick(broken, 1.5, 2), "a", txn.Commit, Done))
		h.Ended(end(2, 3, txn.Commit, Done))
		return h
	}},
	"participant told when the outcome is forgotten, of the contrary": {ContraryDecisions, func(broken bool) *History {
		h := abortedHistory()
		h.Ended(end(101, 102, txn.Commit, NotFound))
		h.Told(told(110, "a", pick(broken, txn.Commit, txn.Abort), Done))
		return h
	}},
	"low water mark above an open transaction": {Resurrection, func(broken bool) *History {
		h := opened()
		h.Opened(Open{at(2, 3), two, 10 * second, 100 * second})
		h.Ended(End{at(3, 5), two, txn.Abort, Done})
		h.Told(Decision{at(4, 4.5), two, "a", txn.Abort, pick[uint64](broken, 1, 0), Done})
		h.Used(Use{at(6, 7), one, "ADD", "", Done})
		h.Ended(end(2, 9, txn.Commit, Done))
		return h
	}},
	"success before a participant applied it": {NotDone, func(broken bool) *History {
		h := opened()
		h.Used(Use{at(1, 2), one, "ADD", "a", Done})
		h.Used(Use{at(1, 2), one, "ADD", "b", Done})
		h.Ended(end(2, 5, txn.Commit, Done))
		h.Told(told(3, "a", txn.Commit, Done))
		h.Told(told(pick(broken, 5.0, 4), "b", txn.Commit, Done))
		return h
	}},
	"success before a participant could tell that it applied it": {NotDone, func(broken bool) *History {
		h := opened()
		h.Used(Use{at(1, 2), one, "ADD", "a", pick(broken, Done, Unknown)})
		h.Ended(end(2, 5, txn.Commit, Done))
		h.Told(told(3, "a", txn.Commit, Unknown))
		return h
	}},
	"two ids the same": {IDRepeated, func(broken bool) *History {
		h := committedHistory()
		id := pick(broken, one, two)
		h.Opened(Open{at(4, 5), id, second, second})
		h.Ended(End{at(5, 9), id, txn.Commit, pick(broken, Unknown, Done)})
		return h
	}},
	"smaller id later": {IDNotGrowing, func(broken bool) *History {
		h := New()
		h.Live(nil)
		for _, op := range []Open{{at(0, 1), two, second, 0}, {at(pick(broken, 2, 0.5), 3), one, second, 0}} {
			h.Opened(op)
			h.Ended(End{at(5, 6), op.ID, txn.Abort, Done})
		}
		return h
	}},
	"ended what nobody opened": {NeverIssued, func(broken bool) *History {
		h := committedHistory()
		h.Ended(End{at(2, 3), pick(broken, two, one), txn.Commit, Done})
		return h
	}},
	"never asked how it ended": {NoOutcome, func(broken bool) *History {
		h := opened()
		h.Ended(end(20, 21, txn.Abort, pick(broken, Unknown, Done)))
		return h
	}},
	"never ends": {Stuck, func(broken bool) *History {
		h := committedHistory()
		h.Live(pick(broken, []txn.ID{two}, nil))
		return h
	}},
	"nobody asked what is live": {NotListed, func(broken bool) *History {
		h := New()
		if !broken {
			h.Live(nil)
		}
		return h
	}},
	"half of a committed transaction": {Torn, func(broken bool) *History { return half(broken, committedHistory()) }},
	"half of a transaction of which nobody knows": {Torn, func(broken bool) *History {
		h := opened()
		h.Ended(end(101, 102, txn.Commit, NotFound))
		return half(broken, h)
	}},
	"half of an aborted transaction": {Torn, func(broken bool) *History {
		h := abortedHistory()
		h.Sent(inTxn("t", "a", Done))
		h.Sent(inTxn("u", "b", Done))
		h.Read("t", pick(broken, []string{"a"}, nil))
		h.Read("u", nil)
		return h
	}},
	"committed, and nothing is there": {LostCommit, func(broken bool) *History {
		h := committedHistory()
		h.Sent(inTxn("t", "a", pick(broken, Done, Unknown)))
		h.Read("t", nil)
		return h
	}},
	"participant told of a commit, and nothing is there": {LostCommit, func(broken bool) *History {
		h := opened()
		h.Ended(end(2, 3, pick(broken, txn.Commit, txn.Abort), Unknown))
		h.Told(told(4, "t", pick(broken, txn.Commit, txn.Abort), Done))
		h.Ended(end(101, 102, txn.Commit, NotFound))
		h.Sent(inTxn("t", "a", Done))
		h.Read("t", nil)
		return h
	}},
	"plain message lost": {MessageLost, func(broken bool) *History {
		h := committedHistory()
		h.Sent(plain("a", pick(broken, Done, Unknown)))
		h.Read("t", nil)
		return h
	}},
	"message twice": {MessageTwice, func(broken bool) *History {
		h := committedHistory()
		h.Sent(inTxn("t", "a", Done))
		h.Read("t", pick(broken, []string{"a", "a"}, []string{"a"}))
		return h
	}},
	"aborted message seen": {AbortedRead, func(broken bool) *History {
		h := abortedHistory()
		h.Sent(inTxn("t", "a", Unknown))
		h.Read("t", pick(broken, []string{"a"}, nil))
		return h
	}},
	"aborted message seen for a moment": {AbortedRead, func(broken bool) *History {
		h := pick(broken, abortedHistory(), committedHistory())
		h.Sent(inTxn("t", "a", Unknown))
		h.Delivered(Delivery{"reader", "t", "a", 4 * second})
		h.Read("t", pick(broken, nil, []string{"a"}))
		return h
	}},
	"message seen before its transaction was committed": {AbortedRead, func(broken bool) *History {
		h := committedHistory()
		h.Sent(inTxn("t", "a", Done))
		h.Delivered(Delivery{"reader", "t", "a", pick(broken, second, 3*second)})
		h.Delivered(Delivery{"reader", "t", "a", 4 * second})
		h.Read("t", []string{"a"})
		return h
	}},
	"message seen, then gone": {Vanished, func(broken bool) *History {
		h := committedHistory()
		h.Sent(plain("a", Unknown))
		h.Delivered(Delivery{"reader", "t", "a", 4 * second})
		h.Read("t", pick(broken, nil, []string{"a"}))
		return h
	}},
	"refused message seen": {RefusedSeen, func(broken bool) *History {
		h := committedHistory()
		h.Sent(inTxn("t", "a", pick(broken, Refused, Unknown)))
		h.Read("t", []string{"a"})
		return h
	}},
	"message from nowhere": {Invented, func(broken bool) *History {
		h := committedHistory()
		h.Sent(plain(pick(broken, "b", "a"), Unknown))
		h.Read("t", []string{"a"})
		return h
	}},
	"topic not read": {NotRead, func(broken bool) *History {
		h := committedHistory()
		h.Sent(plain("a", Done))
		if !broken {
			h.Read("t", []string{"a"})
		}
		return h
	}},
	"subscription not read": {NotRead, func(broken bool) *History {
		h := committedHistory()
		h.Acked(ackIn(one, "a", Done))
		if !broken {
			h.Left("t", "s", nil)
		}
		return h
	}},
	"acknowledged for good, delivered again": {DeliveredAgain, func(broken bool) *History {
		h := stored(committedHistory(), "a", "b")
		h.Acked(ackIn(one, "a", pick(broken, Done, Unknown)))
		return h
	}},
	"cumulatively acknowledged for good, delivered again": {DeliveredAgain, func(broken bool) *History {
		h := stored(committedHistory(), "a", "b")
		h.Acked(throughIn(one, "a", pick(broken, Done, Refused)))
		return h
	}},
	"plainly acknowledged, delivered again": {DeliveredAgain, func(broken bool) *History {
		h := stored(committedHistory(), "a", "b")
		h.Acked(Ack{Topic: "t", Subscription: "s", Key: "a", Answer: pick(broken, Done, Unknown)})
		return h
	}},
	"acknowledgement of an aborted transaction kept": {NotReturned, func(broken bool) *History {
		h := stored(pick(broken, abortedHistory(), committedHistory()), "b")
		h.Acked(ackIn(one, "a", Done))
		return h
	}},
	"acknowledged in two": {AckedTwice, func(broken bool) *History {
		h := stored(committedHistory(), "b")
		h.Opened(Open{at(4, 5), two, second, second})
		h.Ended(End{at(5, 6), two, pick(broken, txn.Commit, txn.Abort), Done})
		h.Acked(ackIn(one, "a", Done))
		h.Acked(ackIn(one, "a", Done))
		h.Acked(throughIn(two, "a", Done))
		h.Acked(ackIn(two, "a", Done))
		return h
	}},
}

func told(at float64, participant string, action txn.Action, answer Answer) Decision {
	moment := time.Duration(at * float64(second))
	return Decision{Span{"tc", moment, moment + second/2}, one, participant, action, 0, answer}
}

// half is a history with two messages of transaction one, of which readers see one if it is broken, else both.
func half(broken bool, h *History) *History {
	h.Sent(inTxn("t", "a", Done))
	h.Sent(inTxn("u", "b", Done))
	h.Read("t", []string{"a"})
	h.Read("u", pick(broken, nil, []string{"b"}))
	return h
}

func TestAnomalies(t *testing.T) {
	for name, c := range anomalies {
		t.Run(name, func(t *testing.T) {
			found := c.build(true).Check()
			if len(found) == 0 || slices.ContainsFunc(found, func(a Anomaly) bool { return a.Kind != c.want }) {
				t.Errorf("found %v, want: %s", found, c.want)
			}
			for _, a := range c.build(false).Check() {
				t.Errorf("in the neighbour: %s", a)
			}
		})
	}
}

// kinds are all of them.
var kinds = []Kind{
	ChangedMind, Resurrection, ContraryDecisions, AbortedRead, Unasked, ForgottenEarly, Contradiction, IDRepeated,
	IDNotGrowing, NeverIssued, NotDone, NoOutcome, Stuck, NotListed, Torn, LostCommit,
	NotRead, MessageLost, MessageTwice, Vanished, RefusedSeen, Invented, DeliveredAgain, NotReturned,
	AckedTwice,
}

// TestEveryKindHasAHistory keeps the table complete.
func TestEveryKindHasAHistory(t *testing.T) {
	shown := map[Kind]bool{}
	for _, c := range anomalies {
		shown[c.want] = true
	}
	for _, kind := range kinds {
		if !shown[kind] {
			t.Errorf("no history shows: %s", kind)
		}
	}
}

func TestAnomaliesAreTold(t *testing.T) {
	h := opened()
	h.Ended(End{Span{"alice", 2 * second, 3 * second}, one, txn.Commit, Done})
	h.Ended(End{Span{"bob", 4 * second, 0}, one, txn.Abort, Unknown})
	h.Ended(End{Span{"carol", 5 * second, 6 * second}, one, txn.Commit, Contrary})
	want := `changed its mind: transaction (0,1): END(COMMIT): success by alice [2s, 3s] shows COMMIT, END(COMMIT): contrary by carol [5s, 6s] shows ABORT
       0.000000s - 1.000000s    client         NEW, time to live 10s
       2.000000s - 3.000000s    alice          END(COMMIT): success
       4.000000s - ...          bob            END(ABORT): unknown
       5.000000s - 6.000000s    carol          END(COMMIT): contrary
       9.950000s - ...                         deadline
      99.950000s - ...                         retention`
	found := h.Check()
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("told:\n%v\nwant:\n%s", found, want)
	}
}

func TestCounts(t *testing.T) {
	h := committedHistory()
	h.Opened(Open{at(0, 1), two, second, second})
	h.Ended(End{at(2, 3), two, txn.Commit, Unknown})
	h.Ended(End{at(2, 3), two, txn.Commit, Contrary})
	h.Sent(plain("a", Done))
	if got, want := h.Counts(), (Counts{Opened: 2, Committed: 1, Aborted: 1, Ends: 3, UnknownEnds: 1, Messages: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}
