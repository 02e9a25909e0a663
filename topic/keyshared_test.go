package topic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var byKey = ofType(pulsarproto.CommandSubscribe_Key_Shared)

func outOfOrder(cmd *pulsarproto.CommandSubscribe) {
	cmd.KeySharedMeta = &pulsarproto.KeySharedMeta{
		KeySharedMode: pulsarproto.KeySharedMode_AUTO_SPLIT.Enum(), AllowOutOfOrderDelivery: ptr(true),
	}
}

func sticky(ranges ...[2]int32) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) {
		cmd.KeySharedMeta = &pulsarproto.KeySharedMeta{KeySharedMode: pulsarproto.KeySharedMode_STICKY.Enum()}
		for _, r := range ranges {
			cmd.KeySharedMeta.HashRanges = append(cmd.KeySharedMeta.HashRanges, &pulsarproto.IntRange{Start: &r[0], End: &r[1]})
		}
	}
}

// keyed is messages "key-0", "key-1" and so on for each key.
type keyed struct {
	p    *testProducer
	sent map[string]int
	at   map[string]ledger.Position
	next uint64
}

func newKeyed(p *testProducer) *keyed {
	return &keyed{p: p, sent: make(map[string]int), at: make(map[string]ledger.Position)}
}

// send sends one message of each key and returns their texts.
func (k *keyed) send(keys ...string) (texts []string) {
	k.p.t.Helper()
	for _, key := range keys {
		text := fmt.Sprintf("%s-%d", key, k.sent[key])
		k.sent[key]++
		k.next++
		msg := message(k.next, "")
		msg.Payload = payloadOf(k.p.t, &pulsarproto.MessageMetadata{PartitionKey: &key}, text)
		k.at[text] = k.p.send(msg)
		texts = append(texts, text)
	}
	return texts
}

// twoKeys returns a key of each of two consumers, of which the second came last: it has the lower half.
func twoKeys() (ofFirst, ofSecond string) {
	for i := 0; ofFirst == "" || ofSecond == ""; i++ {
		if key := fmt.Sprint("k", i); stickykey.Hash([]byte(key)) > stickykey.Size/2 {
			ofFirst = key
		} else {
			ofSecond = key
		}
	}
	return ofFirst, ofSecond
}

func (c *testConsumer) wantTexts(w *world, name string, want ...string) {
	c.t.Helper()
	w.quiet(name)
	if got := c.drain(); !slices.Equal(got, want) {
		c.t.Fatalf("received %q, want %q", got, want)
	}
}

// TestKeySharedOrder: every key goes to one consumer, in order, and both are given something.
func TestKeySharedOrder(t *testing.T) {
	for _, ring := range []int{0, 100} {
		w := newWorld(t, func(o *Options) { o.KeySharedRingPoints = ring })
		k := newKeyed(w.produce("a"))
		consumers := []*testConsumer{
			w.subscribe("a", "s", byKey, named("c1")), w.subscribe("a", "s", byKey, named("c2")), w.subscribe("a", "s", byKey, named("c3")),
		}
		for range 10 {
			for key := range 20 {
				k.send(fmt.Sprint("key", key))
			}
		}
		w.quiet("a")
		owner, next := make(map[string]int), make(map[string]int)
		for i, c := range consumers {
			got := c.drain()
			if len(got) == 0 {
				t.Fatalf("consumer %d is given nothing", i)
			}
			for _, text := range got {
				key, number, _ := strings.Cut(text, "-")
				if had, known := owner[key]; known && had != i {
					t.Fatalf("%s is with consumers %d and %d", key, had, i)
				}
				owner[key] = i
				if number != fmt.Sprint(next[key]) {
					t.Fatalf("%s came instead of number %d", text, next[key])
				}
				next[key]++
			}
		}
		if len(owner) != 20 {
			t.Fatalf("%d keys arrived, want 20", len(owner))
		}
	}
}

// TestKeySharedMove: a new consumer is given a key only when nothing of it is unacknowledged elsewhere (PIP-379), unless order
// does not matter. Other keys go on meanwhile.
func TestKeySharedMove(t *testing.T) {
	first, second := twoKeys()
	w := newWorld(t)
	k := newKeyed(w.produce("a"))
	a := w.subscribe("a", "s", byKey)
	k.send(first, second)
	a.wantTexts(w, "a", first+"-0", second+"-0")
	b := w.subscribe("a", "s", byKey)
	k.send(second, first, second)
	a.wantTexts(w, "a", first+"-1")
	b.wantTexts(w, "a")
	a.ack(k.at[second+"-0"])
	b.wantTexts(w, "a", second+"-1", second+"-2")
	k.send(second)
	b.wantTexts(w, "a", second+"-3")
	// What b gives back goes before what is new, and comes in order.
	b.setFull(true)
	b.Redeliver(redeliver(k.at[second+"-2"], k.at[second+"-1"]))
	k.send(second)
	b.wantTexts(w, "a")
	b.setFull(false)
	b.Resume()
	b.wantTexts(w, "a", second+"-1", second+"-2", second+"-4")
	b.Close()
	a.wantTexts(w, "a", second+"-1", second+"-2", second+"-3", second+"-4")

	w = newWorld(t)
	k = newKeyed(w.produce("a"))
	a = w.subscribe("a", "s", byKey, outOfOrder)
	k.send(second)
	a.wantTexts(w, "a", second+"-0")
	b = w.subscribe("a", "s", byKey, outOfOrder)
	k.send(second)
	b.wantTexts(w, "a", second+"-1")
}

// TestKeySharedSticky: consumers have the ranges that they ask for; a hash of nobody waits for one who has it.
func TestKeySharedSticky(t *testing.T) {
	upper, lower := twoKeys()
	w := newWorld(t)
	k := newKeyed(w.produce("a"))
	a := w.subscribe("a", "s", byKey, sticky([2]int32{0, 32768}))
	for name, options := range map[string]struct {
		option subscribeOption
		want   pulsarproto.ServerError
	}{
		"overlap":        {sticky([2]int32{40000, 50000}, [2]int32{32768, 33000}), pulsarproto.ServerError_ConsumerAssignError},
		"no ranges":      {sticky(), pulsarproto.ServerError_ConsumerAssignError},
		"backward":       {sticky([2]int32{50000, 40000}), pulsarproto.ServerError_ConsumerAssignError},
		"another policy": {outOfOrder, pulsarproto.ServerError_ConsumerBusy},
	} {
		_, err := w.trySubscribe("a", "s", byKey, options.option)
		var refusal *cnx.Refusal
		if !errors.As(err, &refusal) || refusal.Code != options.want {
			t.Errorf("%s: %v, want %v", name, err, options.want)
		}
	}
	k.send(upper, lower)
	a.wantTexts(w, "a", lower+"-0")
	b := w.subscribe("a", "s", byKey, sticky([2]int32{32769, 65535}))
	b.wantTexts(w, "a", upper+"-0")
	b.Close()
	k.send(upper, lower)
	a.wantTexts(w, "a", lower+"-1")
	a.Close()
	w.subscribe("a", "s", byKey, sticky([2]int32{0, 65535})).wantTexts(w, "a", upper+"-0", lower+"-0", upper+"-1", lower+"-1")
}

// TestKeySharedTransaction: what a transaction holds holds its key: whoever has the key next is given it after the transaction
// has ended, what is given back first.
func TestKeySharedTransaction(t *testing.T) {
	_, key := twoKeys()
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		for _, how := range []string{"moves", "closes", "restarts"} {
			t.Run(fmt.Sprint(action, how), func(t *testing.T) {
				w := newWorld(t)
				k := newKeyed(w.produce("a"))
				a := w.subscribe("a", "s", byKey)
				k.send(key, key, key)
				a.wantTexts(w, "a", key+"-0", key+"-1", key+"-2")
				id := w.coord.begin()
				if err := a.ackIn(id, k.at[key+"-0"]); err != nil {
					t.Fatal(err)
				}
				a.ack(k.at[key+"-1"])
				k.send(key)
				a.wantTexts(w, "a", key+"-3") // a consumer is given more of a key that it has
				a.ack(k.at[key+"-3"])
				b := a
				left := []string{key + "-2", key + "-4"}
				switch how {
				case "moves":
					b = w.subscribe("a", "s", byKey)
					a.ack(k.at[key+"-2"])
					left = left[1:]
				case "closes":
					a.Close()
					b = w.subscribe("a", "s", byKey)
				case "restarts":
					w.restart()
					k.p = w.produce("a")
					b = w.subscribe("a", "s", byKey)
				}
				k.send(key)
				b.wantTexts(w, "a")
				w.end(id, action, "a", "s")
				if action == txn.Abort {
					left = append([]string{key + "-0"}, left...)
				}
				b.wantTexts(w, "a", left...)
			})
		}
	}
}

// TestKeySharedLookAhead: a consumer that takes nothing holds up its own keys alone; how far delivery looks ahead is bounded,
// and so is what a round looks at.
func TestKeySharedLookAhead(t *testing.T) {
	ofStuck, ofBusy := twoKeys()
	w := newWorld(t)
	p := w.produce("a")
	stuck, err := w.trySubscribe("a", "s", byKey)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := w.trySubscribe("a", "s", byKey)
	if err != nil {
		t.Fatal(err)
	}
	busy.Flow(100000)
	payload := func(key string) []byte {
		return payloadOf(t, &pulsarproto.MessageMetadata{PartitionKey: &key}, key)
	}
	// More than may wait, with something for the other now and then.
	const each = 2 * aheadPerConsumer
	for i := range each + 500 {
		msg := message(uint64(i), "")
		msg.Payload = payload(ofStuck)
		if i%10 == 9 {
			msg.Payload = payload(ofBusy)
		}
		p.Send(msg)
	}
	for range each + 500 {
		p.receipt()
	}
	w.quiet("a")
	parked := make(chan int, 1)
	topic := w.topics.loaded(parse(t, "a").String())
	topic.ask(func(bool) { parked <- topic.subscriptions["s"].parked.len() })
	if n := <-parked; n != each {
		t.Fatalf("%d entries wait, want %d", n, each)
	}
	if n := len(busy.messages); n != each/9 {
		t.Fatalf("the other one was given %d messages, want %d", n, each/9)
	}
	stuck.Flow(100000)
	w.quiet("a")
	if n := len(stuck.messages) + len(busy.messages); n != each+500 {
		t.Fatalf("%d messages were delivered, want %d", n, each+500)
	}
	var last ledger.Position
	for range len(stuck.messages) {
		d := stuck.next()
		if !last.Before(position(d)) {
			t.Fatalf("%v behind %v", position(d), last)
		}
		last = position(d)
	}
}

// TestKeySharedFromTheStore: what waits is read again from the store when its consumer takes it.
func TestKeySharedFromTheStore(t *testing.T) {
	ofFirst, ofSecond := twoKeys()
	w := newWorld(t, func(o *Options) { o.CacheBytes = 1 })
	k := newKeyed(w.produce("a"))
	var first, second []string
	for range 50 {
		first = append(first, k.send(ofFirst)...)
		second = append(second, k.send(ofSecond)...)
	}
	a, err := w.trySubscribe("a", "s", byKey, earliest)
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.trySubscribe("a", "s", byKey)
	if err != nil {
		t.Fatal(err)
	}
	b.Flow(1000)
	b.wantTexts(w, "a", second...)
	for len(first) > 0 {
		a.Flow(10)
		a.wantTexts(w, "a", first[:10]...)
		first = first[10:]
	}
}

// TestKeySharedBehindCumulativePendingAck: messages that a transaction holds cumulatively, from when the subscription was
// Exclusive, hold their keys no longer than that.
func TestKeySharedBehindCumulativePendingAck(t *testing.T) {
	for _, action := range []txn.Action{txn.Abort, txn.Commit} {
		w := newWorld(t)
		k := newKeyed(w.produce("a"))
		c := w.subscribe("a", "s", earliest)
		k.send("k", "k")
		id := w.coord.begin()
		if err := c.tryAck(ackInTxn(id, ackOf(pulsarproto.CommandAck_Cumulative, k.at["k-1"]))); err != nil {
			t.Fatal(err)
		}
		c.Close()
		c = w.subscribe("a", "s", byKey)
		k.send("k")
		c.wantTexts(w, "a")
		w.end(id, action, "a", "s")
		if action == txn.Commit {
			c.wantTexts(w, "a", "k-2")
		} else {
			c.wantTexts(w, "a", "k-0", "k-1", "k-2")
		}
	}
}
