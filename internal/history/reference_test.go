package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// reference draws histories that are right: it draws when each transaction is opened, decided and forgotten, and answers every
// operation by that.
type reference struct {
	*rapid.T
	h   *History
	all []*fate
}

// fate is what becomes of one transaction.
type fate struct {
	id                          txn.ID
	action                      txn.Action
	known                       time.Duration // when NEW was answered
	decided, applied, forgotten time.Duration
	topics                      []string
	committed                   []string // "topic key" of messages with a receipt
}

const (
	referenceTTL  = 10 * time.Second
	referenceKept = 60 * time.Second
	referenceEnd  = 200 * time.Second
)

func (r *reference) between(from, to time.Duration) time.Duration {
	return from + time.Duration(rapid.Int64Range(0, int64(to-from)).Draw(r.T, "time"))
}

// around is a span with moment in it, not before notBefore.
func (r *reference) around(client string, notBefore, moment time.Duration) Span {
	return Span{client, r.between(max(notBefore, moment-2*time.Second), moment), r.between(moment, moment+2*time.Second)}
}

func (r *reference) chance(oneIn int) bool { return rapid.IntRange(1, oneIn).Draw(r.T, "chance") == 1 }

func drawHistory(t *rapid.T) *reference {
	r := &reference{T: t, h: New()}
	r.h.Live(nil)
	read := map[string][]string{"t": nil, "u": nil}
	for i := range rapid.IntRange(1, 4).Draw(t, "transactions") {
		f := r.open(i)
		r.all = append(r.all, f)
		for _, topic := range f.topics {
			read[topic] = append(read[topic], r.use(f, topic)...)
		}
		r.decide(f)
		r.ask(f)
	}
	for topic, keys := range read {
		r.h.Read(topic, keys)
	}
	return r
}

// open opens the i-th transaction and draws its fate.
func (r *reference) open(i int) *fate {
	opened := time.Duration(i) * 5 * time.Second
	span := r.around("a", opened-time.Second, opened)
	f := &fate{id: txn.ID{Least: uint64(i + 1)}, known: span.Return, action: txn.Action(rapid.IntRange(0, 1).Draw(r.T, "action"))}
	r.h.Opened(Open{span, f.id, referenceTTL, referenceKept})
	f.topics = [][]string{nil, {"t"}, {"t", "u"}}[rapid.IntRange(0, 2).Draw(r.T, "topics")]
	if r.chance(4) {
		f.action = txn.Abort // by its deadline
		f.decided = r.between(opened+referenceTTL, opened+referenceTTL+5*time.Second)
	} else {
		f.decided = r.between(span.Return, span.Return+8*time.Second)
	}
	f.applied = f.decided
	f.forgotten = Never
	if r.chance(2) {
		f.forgotten = r.between(f.decided+referenceKept, referenceEnd)
	}
	return f
}

// use registers a topic and sends to it; it returns what readers see in the end.
func (r *reference) use(f *fate, topic string) []string {
	add := r.around("a", f.known, r.between(f.known, f.decided))
	r.h.Used(Use{add, f.id, "ADD", topic, Done})
	var visible []string
	for n := range rapid.IntRange(0, 2).Draw(r.T, "messages") {
		key := fmt.Sprintf("%d-%d", f.id.Least, n)
		m := Message{Topic: topic, Key: key, Txn: f.id, InTxn: true, Answer: Done}
		if r.chance(3) {
			m.Answer = Unknown
		}
		r.h.Sent(m)
		if f.action == txn.Abort || m.Answer == Unknown && r.chance(2) {
			continue
		}
		visible = append(visible, key)
		if m.Answer == Done {
			f.committed = append(f.committed, topic+" "+key)
		}
		if r.chance(2) {
			r.h.Delivered(Delivery{"reader", topic, key, r.between(f.decided, referenceEnd)})
		}
	}
	return visible
}

// decide asks for the decision, perhaps without hearing of it, and tells the participants, some again.
func (r *reference) decide(f *fate) {
	for _, topic := range f.topics {
		for again := true; again; again = r.chance(4) {
			told := r.around("tc", f.decided, r.between(f.decided, f.decided+5*time.Second))
			r.h.Told(Decision{told, f.id, topic, f.action, r.lowWaterMark(f, told.Call), Unknown})
			r.h.Told(Decision{told, f.id, topic, f.action, 0, Done})
			f.applied = max(f.applied, told.Return)
		}
	}
	for n := range rapid.IntRange(0, 2).Draw(r.T, "lost ENDs") {
		r.h.Ended(End{Span{fmt.Sprint("lost ", n), r.between(f.known, referenceEnd), Never}, f.id, txn.Action(n), Unknown})
	}
	span := r.around("b", f.known, f.decided)
	span.Return = max(span.Return, f.applied)
	r.h.Ended(End{span, f.id, f.action, Done})
}

// lowWaterMark is one below the lowest transaction that is live at moment; f is.
func (r *reference) lowWaterMark(f *fate, moment time.Duration) uint64 {
	for _, earlier := range r.all {
		if earlier.applied > moment {
			return earlier.id.Least - 1
		}
	}
	return f.id.Least - 1
}

// ask asks for the outcome, at random moments and in the end.
func (r *reference) ask(f *fate) {
	last := Span{"z", referenceEnd, referenceEnd}
	for n := range rapid.IntRange(0, 5).Draw(r.T, "questions") {
		r.question(f, r.around(fmt.Sprint("c", n), f.known, r.between(f.known, referenceEnd)), n)
	}
	r.question(f, last, 0)
}

func (r *reference) question(f *fate, span Span, n int) {
	moment := max(span.Call, min(f.decided, span.Return))
	switch {
	case moment < f.decided:
		r.h.Used(Use{span, f.id, "SEND", "", Done})
	case moment >= f.forgotten:
		r.h.Ended(End{span, f.id, f.action, NotFound})
	case n%3 == 1:
		r.h.Saw(Look{span, f.id, f.action.Deciding(), true})
	case n%3 == 2:
		r.h.Ended(End{span, f.id, opposite(f.action), Contrary})
	default:
		span.Return = max(span.Return, f.applied)
		r.h.Ended(End{span, f.id, f.action, Done})
	}
}

func TestDrawnHistoriesAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawHistory(t)
		for _, a := range r.h.Check() {
			t.Errorf("found: %s", a)
		}
		accounts, _ := r.h.accounts()
		for _, a := range accounts {
			if v := judge(a.steps); v != nil {
				t.Errorf("judge: %v", v)
			}
			if result := linearizable(a.steps); result != "Ok" {
				t.Errorf("porcupine: %s", result)
			}
		}
	})
}

// mutations break one transaction of a right history, if they can.
var mutations = map[string]struct {
	want  []Kind
	apply func(r *reference, f *fate) bool
}{
	"contrary success": {[]Kind{ChangedMind}, func(r *reference, f *fate) bool {
		r.h.Ended(End{r.late(), f.id, opposite(f.action), Done})
		return true
	}},
	"contrary seen": {[]Kind{ChangedMind}, func(r *reference, f *fate) bool {
		r.h.Saw(Look{r.late(), f.id, opposite(f.action).Decided(), true})
		return true
	}},
	"open again": {[]Kind{Resurrection}, func(r *reference, f *fate) bool {
		r.h.Saw(Look{r.late(), f.id, txn.Open, true})
		return true
	}},
	"used again": {[]Kind{Resurrection}, func(r *reference, f *fate) bool {
		r.h.Used(Use{r.late(), f.id, "SEND", "", Done})
		return true
	}},
	"known again": {[]Kind{Resurrection}, func(r *reference, f *fate) bool {
		if f.forgotten == Never {
			return false
		}
		r.h.Ended(End{r.late(), f.id, f.action, Done})
		return true
	}},
	"forgotten early": {[]Kind{ForgottenEarly, Unasked, Resurrection}, func(r *reference, f *fate) bool {
		at := r.between(f.known+1, f.known+referenceKept/2)
		r.h.Ended(End{Span{"m", at, at}, f.id, f.action, NotFound})
		return true
	}},
	"told the contrary": {[]Kind{ContraryDecisions}, func(r *reference, f *fate) bool {
		r.h.Told(Decision{r.late(), f.id, "v", opposite(f.action), 0, Unknown})
		return true
	}},
	"not told": {[]Kind{NotDone}, func(r *reference, f *fate) bool {
		before := len(r.h.decisions)
		r.h.decisions = slices.DeleteFunc(r.h.decisions, func(d Decision) bool { return d.ID == f.id && d.Participant == "t" })
		return len(r.h.decisions) < before
	}},
	"id again": {[]Kind{IDRepeated, IDNotGrowing}, func(r *reference, f *fate) bool {
		r.h.Opened(Open{r.late(), f.id, time.Second, time.Second})
		return true
	}},
	"one message gone": {[]Kind{LostCommit, Torn, Vanished}, func(r *reference, f *fate) bool {
		if len(f.committed) == 0 {
			return false
		}
		topic, key := f.committed[0][:1], f.committed[0][2:]
		r.h.read[topic] = slices.DeleteFunc(r.h.read[topic], func(k string) bool { return k == key })
		return true
	}},
	"one message too many": {[]Kind{AbortedRead, Torn}, func(r *reference, f *fate) bool {
		i := slices.IndexFunc(r.h.messages, func(m Message) bool { return m.Txn == f.id })
		if i < 0 || f.action == txn.Commit {
			return false
		}
		r.h.read[r.h.messages[i].Topic] = append(r.h.read[r.h.messages[i].Topic], r.h.messages[i].Key)
		return true
	}},
	"stuck": {[]Kind{Stuck}, func(r *reference, f *fate) bool {
		r.h.Live([]txn.ID{f.id})
		return true
	}},
}

// late is a span behind everything.
func (r *reference) late() Span {
	return Span{"m", referenceEnd + 5*time.Second, referenceEnd + 6*time.Second}
}

func TestMutatedHistoriesAreWrong(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			applied := 0
			rapid.Check(t, func(t *rapid.T) {
				r := drawHistory(t)
				if !m.apply(r, rapid.SampledFrom(r.all).Draw(t, "transaction")) {
					return
				}
				applied++
				found := r.h.Check()
				if !slices.ContainsFunc(found, func(a Anomaly) bool { return slices.Contains(m.want, a.Kind) }) {
					t.Fatalf("found %v, want one of %v", found, m.want)
				}
				for _, a := range found {
					if !slices.Contains(m.want, a.Kind) {
						t.Errorf("also found: %s", a)
					}
				}
			})
			if applied == 0 {
				t.Error("the mutation never applied")
			}
		})
	}
}

// BenchmarkCheck checks a history of the size that a simulated schedule has.
func BenchmarkCheck(b *testing.B) {
	h := New()
	h.Live(nil)
	h.Read("t", nil)
	for i := range 200 {
		id, began := txn.ID{Least: uint64(i + 1)}, time.Duration(i)*time.Second
		h.Opened(Open{Span{"a", began, began + 1}, id, time.Minute, time.Hour})
		h.Used(Use{Span{"a", began + 2, began + 3}, id, "ADD", "t", Done})
		h.Told(Decision{Span{"tc", began + 6, began + 7}, id, "t", txn.Abort, id.Least - 1, Done})
		h.Sent(Message{Topic: "t", Key: fmt.Sprint(i), Txn: id, InTxn: true, Answer: Done})
		h.Ended(End{Span{"a", began + 5, began + 8}, id, txn.Abort, Done})
		for n := range 4 {
			h.Ended(End{Span{"b", began + time.Duration(n), Never}, id, txn.Action(n % 2), Unknown})
			h.Ended(End{Span{"c", began + time.Duration(9+n), began + 20}, id, txn.Commit, Contrary})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if found := h.Check(); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
