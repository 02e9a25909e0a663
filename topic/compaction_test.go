package topic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// keyValue is a message for compaction; without value it is a tombstone.
type keyValue struct{ key, value string }

func readCompacted(cmd *pulsarproto.CommandSubscribe) { cmd.ReadCompacted = ptr(true) }

// valued is a SEND of one message, or of a batch of several.
func valued(t *testing.T, sequence uint64, all ...keyValue) cnx.Send {
	t.Helper()
	m := &pulsarproto.MessageMetadata{ProducerName: proto.String("p"), SequenceId: &sequence, PublishTime: proto.Uint64(1)}
	content := []byte(all[0].value)
	if len(all) == 1 {
		m.PartitionKey = &all[0].key
		m.NullValue = proto.Bool(all[0].value == "")
	} else {
		m.NumMessagesInBatch, content = proto.Int32(int32(len(all))), nil
		for _, kv := range all {
			single, err := proto.Marshal(&pulsarproto.SingleMessageMetadata{PartitionKey: &kv.key, PayloadSize: proto.Int32(int32(len(kv.value)))})
			if err != nil {
				t.Fatal(err)
			}
			content = append(binary.BigEndian.AppendUint32(content, uint32(len(single))), single...)
			content = append(content, kv.value...)
		}
	}
	payload, err := pulsarproto.AppendPayload(nil, m, content)
	if err != nil {
		t.Fatal(err)
	}
	return cnx.Send{SequenceID: sequence, HighestSequenceID: sequence, NumMessages: int32(len(all)), Metadata: m, Payload: payload}
}

// apply folds messages into a table, as the reader of a compacted topic does.
func apply(table map[string]string, all ...keyValue) {
	for _, kv := range all {
		if kv.value == "" {
			delete(table, kv.key)
		} else {
			table[kv.key] = kv.value
		}
	}
}

// contents returns the messages of a delivery that its client hands out: those that the ack_set does not leave out. The Go client
// knows no placeholders.
func contents(t *testing.T, d cnx.Delivery) []keyValue {
	t.Helper()
	m, body, err := pulsarproto.ParsePayload(d.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if m.NumMessagesInBatch == nil {
		return []keyValue{{m.GetPartitionKey(), string(body)}}
	}
	var all []keyValue
	for i := range m.GetNumMessagesInBatch() {
		var single pulsarproto.SingleMessageMetadata
		size := binary.BigEndian.Uint32(body)
		if err := proto.Unmarshal(body[4:4+size], &single); err != nil {
			t.Fatal(err)
		}
		value := body[4+size:][:single.GetPayloadSize()]
		body = body[int(4+size)+len(value):]
		if d.AckSet == nil || d.AckSet[i/64]&(1<<(i%64)) != 0 {
			if single.GetCompactedOut() {
				t.Errorf("placeholder %d of %v is given to the client", i, position(d))
			}
			all = append(all, keyValue{single.GetPartitionKey(), string(value)})
		}
	}
	return all
}

// table reads everything up to the last message id.
func (c *testConsumer) table() (table map[string]string, messages int) {
	c.t.Helper()
	table = map[string]string{}
	last, _ := c.lastMessageID()
	for at := (ledger.Position{}); last.Ledger != none && at != last; {
		d := c.next()
		at = position(d)
		all := contents(c.t, d)
		messages += len(all)
		apply(table, all...)
	}
	return table, messages
}

// compact compacts and returns the state at the end.
func (w *world) compact(name string) CompactionStatus {
	w.t.Helper()
	if err := w.topics.Compact(context.Background(), parse(w.t, name)); err != nil && !errors.Is(err, ErrPersistence) {
		w.t.Fatal(err)
	}
	return w.compacted(name)
}

// compacted waits until no compaction runs.
func (w *world) compacted(name string) CompactionStatus {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		status, err := w.topics.CompactionStatus(context.Background(), parse(w.t, name))
		if err == nil && status.State != "RUNNING" {
			return status
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the compaction does not come to an end: %+v, %v", status, err)
		}
	}
}

// trim deletes what nobody needs.
func (w *world) trim(name string) {
	w.t.Helper()
	w.quiet(name)
	for range 3 {
		w.topics.loaded(parse(w.t, name).String()).postTick()
		w.trimmed(name)
	}
}

func (w *world) trimmed(name string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		done := make(chan bool, 1)
		t := w.topics.loaded(parse(w.t, name).String())
		t.ask(func(alive bool) { done <- !alive || !t.trim.running && !t.trim.looking })
		if <-done {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the topic is trimmed for ever")
		}
	}
}

// trims makes a topic delete at once what nobody needs.
func trims(o *Options) { o.Retention = 1 }

func TestReadCompacted(t *testing.T) {
	w := newWorld(t, trims)
	p := w.produce("a")
	p.send(valued(t, 0, keyValue{"a", "1"}))
	p.send(valued(t, 1, keyValue{"b", "1"}, keyValue{"a", "2"}, keyValue{"c", "1"}))
	kept := p.send(valued(t, 2, keyValue{"b", "2"}, keyValue{"c", ""}, keyValue{"d", "1"}))
	if s := w.compact("a"); s.State != "SUCCESS" || s.Entries != 2 {
		t.Fatalf("compaction ended with %+v", s)
	}
	want := map[string]string{"a": "2", "b": "2", "d": "1"}
	for _, trimmed := range []bool{false, true, true} {
		if trimmed {
			w.trim("a")
			w.restart()
		}
		c := w.subscribe("a", "r", nonDurable, earliest, readCompacted)
		if last, index := c.lastMessageID(); last != kept || index != 2 {
			t.Errorf("last message id %v index %d, want %v index 2", last, index, kept)
		}
		if table, messages := c.table(); !maps.Equal(table, want) || messages != len(want) {
			t.Errorf("trimmed %t: %d messages, %v, want %v", trimmed, messages, table, want)
		}
		c.wantNothing(w, "a")
		c.Close()
	}
	p = w.produce("a")
	tail := p.send(valued(t, 3, keyValue{"a", "3"}))
	c := w.subscribe("a", "r", nonDurable, earliest, readCompacted)
	if last, _ := c.lastMessageID(); last != tail {
		t.Errorf("last message id %v, want %v", last, tail)
	}
	if table, messages := c.table(); messages != 4 || table["a"] != "3" {
		t.Errorf("with a tail: %d messages, %v", messages, table)
	}
}

// TestOthersReadTheLog: compaction deletes nothing from the log, and who does not ask for compacted entries is given all.
func TestOthersReadTheLog(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	for i := range 3 {
		p.send(valued(t, uint64(i), keyValue{"a", fmt.Sprint(i)}))
	}
	w.compact("a")
	if _, messages := w.subscribe("a", "r", nonDurable, earliest).table(); messages != 3 {
		t.Errorf("%d messages, want 3", messages)
	}
}

// TestCompactionHoldsBack: once a topic was compacted, what came since stays until it is compacted, too.
func TestCompactionHoldsBack(t *testing.T) {
	w := newWorld(t, trims)
	p := w.produce("a")
	p.send(valued(t, 0, keyValue{"a", "1"}))
	w.compact("a")
	p.send(valued(t, 1, keyValue{"b", "1"}))
	w.trim("a")
	if n := w.keysUnder(w.space("a").EntryPrefix()); n != 1 {
		t.Fatalf("%d blocks are left, want the one behind the horizon", n)
	}
	w.restart()
	c := w.subscribe("a", "r", nonDurable, earliest, readCompacted)
	if table, _ := c.table(); !maps.Equal(table, map[string]string{"a": "1", "b": "1"}) {
		t.Errorf("read %v", table)
	}
	c.Close()
	w.compact("a")
	w.trim("a")
	if n := w.keysUnder(w.space("a").EntryPrefix()); n != 0 {
		t.Errorf("%d blocks are left behind a compaction", n)
	}
}

// TestDurableReadCompacted: a durable consumer goes on where it acknowledged, over a restart, and what compaction took out does
// not hold its cursor back.
func TestDurableReadCompacted(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(valued(t, 0, keyValue{"a", "1"}, keyValue{"b", "1"}))
	p.send(valued(t, 1, keyValue{"a", "2"}))
	p.send(valued(t, 2, keyValue{"a", "3"}, keyValue{"c", "1"}))
	w.compact("a")
	c := w.subscribe("a", "s", earliest, readCompacted)
	first := c.next()
	second := c.next()
	if got := append(contents(t, first), contents(t, second)...); len(got) != 3 || got[0] != (keyValue{"b", "1"}) {
		t.Fatalf("received %v", got)
	}
	c.ack(position(first))
	w.restart()
	c = w.subscribe("a", "s", readCompacted)
	if d := c.next(); position(d) != position(second) {
		t.Errorf("received %v first, want %v", position(d), position(second))
	}
	c.ack(position(second))
	w.restart()
	c = w.subscribe("a", "s", readCompacted)
	c.wantNothing(w, "a")
	done := make(chan ledger.Position, 1)
	loaded := w.topics.loaded(parse(t, "a").String())
	loaded.ask(func(bool) { done <- loaded.subscriptions["s"].cursor.Frontier() })
	if frontier := <-done; frontier.Before(position(second).Next()) {
		t.Errorf("the cursor is at %v, want it behind %v", frontier, position(second))
	}
}

// TestCompactionsWait: a compaction that is one too many for all topics together runs when another has ended.
func TestCompactionsWait(t *testing.T) {
	w := newWorld(t)
	w.produce("a").send(valued(t, 0, keyValue{"a", "1"}))
	for range maxCompactions {
		w.topics.compacting <- struct{}{}
	}
	if err := w.topics.Compact(context.Background(), parse(t, "a")); err != nil {
		t.Fatal(err)
	}
	w.quiet("a")
	if status, err := w.topics.CompactionStatus(context.Background(), parse(t, "a")); err != nil || status.State != "RUNNING" || status.Entries != 0 {
		t.Fatalf("it did not wait: %+v, %v", status, err)
	}
	<-w.topics.compacting
	if status := w.compacted("a"); status.State != "SUCCESS" || status.Entries != 1 {
		t.Errorf("it ended as %+v", status)
	}
}

// TestCompactionThreshold: what is not compacted starts a compaction by its size.
func TestCompactionThreshold(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Policies = func(topicname.Name) Policies { return Policies{CompactionThreshold: 1000} }
	})
	p := w.produce("a")
	state := func() CompactionStatus {
		w.topics.loaded(parse(t, "a").String()).postTick()
		return w.compacted("a")
	}
	p.send(valued(t, 0, keyValue{"a", "1"}))
	if s := state(); s.State != "NOT_RUN" {
		t.Fatalf("below the threshold: %+v", s)
	}
	for i := range 20 {
		p.send(valued(t, uint64(1+i), keyValue{"a", fmt.Sprint("a value of some length ", i)}))
	}
	if s := state(); s.State != "SUCCESS" || s.Entries != 1 {
		t.Fatalf("above the threshold: %+v", s)
	}
}

// TestCompactionNeverPassesMaxRead: an open transaction stops it, aborted messages never get in.
func TestCompactionNeverPassesMaxRead(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	open, aborted := w.coord.begin(), w.coord.begin()
	p.send(valued(t, 0, keyValue{"a", "1"}))
	p.send(inTxn(aborted, valued(t, 1, keyValue{"a", "aborted"})))
	w.end(aborted, txn.Abort, "a", "")
	p.send(inTxn(open, valued(t, 2, keyValue{"a", "open"})))
	p.send(valued(t, 3, keyValue{"b", "behind"}))
	if s := w.compact("a"); s.Entries != 1 {
		t.Fatalf("%+v, want one entry", s)
	}
	c := w.subscribe("a", "r", nonDurable, earliest, readCompacted)
	if table, _ := c.table(); !maps.Equal(table, map[string]string{"a": "1"}) {
		t.Errorf("read %v with an open transaction", table)
	}
	c.Close()
	w.end(open, txn.Commit, "a", "")
	w.compact("a")
	c = w.subscribe("a", "r", nonDurable, earliest, readCompacted)
	if table, messages := c.table(); !maps.Equal(table, map[string]string{"a": "open", "b": "behind"}) || messages != 2 {
		t.Errorf("read %v in %d messages behind the commit", table, messages)
	}
}

// TestCompactionCrashes: a compaction that any write of which fails, applied or not, changes nothing that is read, leaves nothing
// behind the next one, and the next one is whole.
func TestCompactionCrashes(t *testing.T) {
	for _, applied := range []bool{false, true} {
		reached := true
		for n := 1; reached; n++ {
			reached = compactionCrash(t, n, applied)
			if n > 30 {
				t.Fatal("a compaction has too many writes")
			}
		}
	}
}

func compactionCrash(t *testing.T, n int, applied bool) bool {
	w := newWorld(t)
	defer w.close()
	p := w.produce("a")
	want := map[string]string{}
	sequence := uint64(0)
	send := func(kv keyValue) {
		p.send(valued(t, sequence, kv))
		sequence++
		apply(want, kv)
	}
	send(keyValue{"a", "1"})
	send(keyValue{"b", "1"})
	w.compact("a")
	send(keyValue{"a", ""})
	send(keyValue{"c", "1"})
	broken := w.breakWrite(n, applied)
	w.compact("a")
	w.kv.set(nil)
	for _, again := range []string{"the crash", "a restart", "the next compaction"} {
		switch again {
		case "a restart":
			w.restart()
		case "the next compaction":
			if s := w.compact("a"); s.State != "SUCCESS" || s.Entries != 2 {
				t.Fatalf("write %d, applied %t: %+v", n, applied, s)
			}
		}
		c := w.subscribe("a", "r", nonDurable, earliest, readCompacted)
		if got, _ := c.table(); !maps.Equal(got, want) {
			t.Fatalf("write %d, applied %t, behind %s: read %v, want %v", n, applied, again, got, want)
		}
		c.Close()
		w.compacted("a")
		space := w.space("a")
		if all := w.keysUnder(space.CompactedPrefix()); again != "the crash" && all != 1 {
			t.Fatalf("write %d, applied %t, behind %s: %d compacted blocks, want those of one generation", n, applied, again, all)
		}
	}
	return *broken
}
