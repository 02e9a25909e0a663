package sim

import (
	"math/rand/v2"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// step is one thing that a client does.
type step struct {
	kind   stepKind
	slot   int // which of the client's transactions, by order of their beginning
	topic  int
	action txn.Action
	named  bool
	whose  int           // ending foreign transactions: which other client's
	pause  time.Duration // before it
}

type stepKind uint8

const (
	opening   stepKind = iota
	sending            // in the transaction
	streaming          // in the transaction, without waiting for the receipt
	acking             // in the transaction
	adding             // registers the topic
	ending
	looking      // asks how the transaction stands
	watching     // asks how another client's transaction stands
	meddling     // ends another client's transaction
	operating    // ends another client's transaction, as a super user
	plainSending // outside transactions
	plainAcking
)

var stepNames = [...]string{"new", "send", "stream", "ack", "add", "end", "look", "watch", "meddle", "operate", "plain send", "plain ack"}

// writeScript draws what a client does.
func writeScript(seed uint64, client int, m *mix) []step {
	r := rand.New(rand.NewPCG(seed, uint64(client)))
	var script []step
	for slot := 0; len(script) < m.steps; slot++ {
		life := writeTransaction(r, slot, m)
		if n := len(script); n > 0 && r.IntN(3) == 0 {
			life = append(life[:1:1], merged(r, script[n-min(n, 3):], life[1:])...)
			script = script[:n-min(n, 3)]
		}
		script = append(script, life...)
	}
	for i := range script {
		script[i].pause = time.Duration(r.ExpFloat64() * float64(120*time.Millisecond))
		if r.IntN(20) == 0 {
			script[i].pause = time.Duration(r.Int64N(int64(4 * time.Second)))
		}
	}
	return script
}

// writeTransaction draws the life of one transaction, with what else happens around it.
func writeTransaction(r *rand.Rand, slot int, m *mix) []step {
	life := []step{{kind: opening, slot: slot, named: r.IntN(2) == 0}}
	for range 1 + r.IntN(4) {
		kinds := []stepKind{sending, sending, sending, streaming, acking, acking, adding, plainSending, plainAcking, meddling, looking, watching}
		life = append(life, step{kind: kinds[r.IntN(len(kinds))], slot: slot, topic: r.IntN(m.topics), whose: r.IntN(m.clients)})
	}
	action := txn.Commit
	if r.IntN(4) == 0 {
		action = txn.Abort
	}
	if r.IntN(10) > 0 {
		life = append(life, step{kind: ending, slot: slot, action: action})
	}
	if r.IntN(3) == 0 {
		again := []step{
			{kind: ending, slot: slot, action: action}, {kind: ending, slot: slot, action: 1 - action}, {kind: looking, slot: slot}, {kind: watching, slot: slot, whose: r.IntN(m.clients)},
			{kind: sending, slot: slot, topic: r.IntN(m.topics)},
			{kind: meddling, slot: slot, whose: r.IntN(m.clients), action: txn.Action(r.IntN(2))},
			{kind: operating, slot: slot, whose: r.IntN(m.clients), action: txn.Action(r.IntN(2))},
		}
		life = append(life, again[r.IntN(len(again))])
	}
	return life
}

// merged lets two sequences alternate at random.
func merged(r *rand.Rand, a, b []step) []step {
	var out []step
	for len(a) > 0 && len(b) > 0 {
		from := &a
		if r.IntN(2) == 0 {
			from = &b
		}
		out = append(out, (*from)[0])
		*from = (*from)[1:]
	}
	return append(append(out, a...), b...)
}
