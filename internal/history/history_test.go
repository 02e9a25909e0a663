package history

import (
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

const second = time.Second

// at is a span in seconds.
func at(call, answered float64) Span {
	return Span{time.Duration(call * float64(second)), time.Duration(answered * float64(second))}
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
			h.Used(Use{at(3, 4), one, "SEND", Done})
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
			h.Used(Use{at(9, 12), one, "ADD", Refused})
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

func TestAnomalies(t *testing.T) {
	for name, c := range map[string]struct {
		want  Kind
		build func() *History
	}{
		"committed, then aborted": {Contradiction, func() *History {
			h := committedHistory()
			h.Ended(end(4, 5, txn.Abort, Done))
			return h
		}},
		"committed, then said to be aborted": {Contradiction, func() *History {
			h := committedHistory()
			h.Ended(end(4, 5, txn.Commit, Contrary))
			return h
		}},
		"committed, then not found within its retention": {Contradiction, func() *History {
			h := committedHistory()
			h.Ended(end(4, 5, txn.Commit, NotFound))
			return h
		}},
		"not found, then committed": {Contradiction, func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, NotFound))
			h.Ended(end(4, 5, txn.Commit, Done))
			return h
		}},
		"not found while its answer is on the way": {Contradiction, func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, NotFound))
			return h
		}},
		"contrary with nobody who asked for it before the deadline": {Contradiction, func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, Contrary))
			return h
		}},
		"contrary to what a lost answer can have done": {Contradiction, func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Commit, Unknown))
			h.Ended(end(4, 5, txn.Commit, Contrary))
			return h
		}},
		"effect before the request": {Contradiction, func() *History {
			h := opened()
			h.Ended(end(2, 3, txn.Abort, Contrary))
			h.Ended(end(4, 5, txn.Commit, Done))
			return h
		}},
		"used behind its end": {Contradiction, func() *History {
			h := abortedHistory()
			h.Used(Use{at(4, 5), one, "SEND", Done})
			return h
		}},
		"seen open behind its end": {Contradiction, func() *History {
			h := committedHistory()
			h.Saw(Look{at(4, 5), one, txn.Open, true})
			return h
		}},
		"seen committing, then aborted": {Contradiction, func() *History {
			h := opened()
			h.Saw(Look{at(2, 3), one, txn.Committing, true})
			h.Ended(end(4, 5, txn.Abort, Done))
			return h
		}},
		"not known while its outcome is kept": {Contradiction, func() *History {
			h := committedHistory()
			h.Saw(Look{at(4, 5), one, 0, false})
			return h
		}},
		"refused while open": {Contradiction, func() *History {
			h := opened()
			h.Used(Use{at(1.5, 2), one, "ADD", Refused})
			h.Ended(end(3, 4, txn.Commit, Done))
			return h
		}},
		"two ids the same": {IDRepeated, func() *History {
			h := committedHistory()
			h.Opened(Open{at(4, 5), one, second, second})
			return h
		}},
		"smaller id later": {IDNotGrowing, func() *History {
			h := New()
			h.Live(nil)
			for _, op := range []Open{{at(0, 1), two, second, 0}, {at(2, 3), one, second, 0}} {
				h.Opened(op)
				h.Ended(End{at(5, 6), op.ID, txn.Abort, Done})
			}
			return h
		}},
		"ended what nobody opened": {NeverIssued, func() *History {
			h := committedHistory()
			h.Ended(End{at(2, 3), two, txn.Commit, Done})
			return h
		}},
		"never asked how it ended": {NoOutcome, opened},
		"never ends": {StillLive, func() *History {
			h := committedHistory()
			h.Live([]txn.ID{two})
			return h
		}},
		"nobody asked what is live": {NotListed, New},
		"half of a transaction": {MessageLost, func() *History {
			h := committedHistory()
			h.Sent(inTxn("t", "a", Done))
			h.Sent(inTxn("u", "b", Done))
			h.Read("t", []string{"a"})
			h.Read("u", nil)
			return h
		}},
		"plain message lost": {MessageLost, func() *History {
			h := committedHistory()
			h.Sent(plain("a", Done))
			h.Read("t", nil)
			return h
		}},
		"message twice": {MessageTwice, func() *History {
			h := committedHistory()
			h.Sent(inTxn("t", "a", Done))
			h.Read("t", []string{"a", "a"})
			return h
		}},
		"aborted message seen": {AbortedSeen, func() *History {
			h := abortedHistory()
			h.Sent(inTxn("t", "a", Unknown))
			h.Read("t", []string{"a"})
			return h
		}},
		"refused message seen": {RefusedSeen, func() *History {
			h := committedHistory()
			h.Sent(inTxn("t", "a", Refused))
			h.Read("t", []string{"a"})
			return h
		}},
		"message from nowhere": {Invented, func() *History {
			h := committedHistory()
			h.Read("t", []string{"a"})
			return h
		}},
		"topic not read": {NotRead, func() *History {
			h := committedHistory()
			h.Sent(plain("a", Done))
			return h
		}},
		"subscription not read": {NotRead, func() *History {
			h := committedHistory()
			h.Acked(ackIn(one, "a", Done))
			return h
		}},
		"acknowledged for good, delivered again": {DeliveredAgain, func() *History {
			h := stored(committedHistory(), "a", "b")
			h.Acked(ackIn(one, "a", Done))
			return h
		}},
		"plainly acknowledged, delivered again": {DeliveredAgain, func() *History {
			h := stored(committedHistory(), "a", "b")
			h.Acked(Ack{Topic: "t", Subscription: "s", Key: "a", Answer: Done})
			return h
		}},
		"acknowledgement of an aborted transaction kept": {NotReturned, func() *History {
			h := stored(abortedHistory(), "b")
			h.Acked(ackIn(one, "a", Done))
			return h
		}},
		"acknowledged in two": {AckedTwice, func() *History {
			h := stored(committedHistory(), "b")
			h.Opened(Open{at(4, 5), two, second, second})
			h.Ended(End{at(5, 6), two, txn.Commit, Done})
			h.Acked(ackIn(one, "a", Done))
			h.Acked(ackIn(two, "a", Done))
			return h
		}},
	} {
		t.Run(name, func(t *testing.T) {
			found := c.build().Check()
			if len(found) != 1 || found[0].Kind != c.want {
				t.Errorf("found %v, want one: %s", found, c.want)
			}
		})
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
