package terminatedtopic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is the outcomes of one coordinator, in order.
type book struct {
	mu     sync.Mutex
	place  uint64
	kept   map[preserver.Key][]preserver.Outcome // oldest first
	marks  map[preserver.Key]uint64              // places of forgettings
	closed func()
	hold   chan struct{} // if set, outcomes are told when it is closed
	held   chan struct{} // gets one when somebody waits for that
	topics *Topics
}

func newBook() *book {
	return &book{kept: map[preserver.Key][]preserver.Outcome{}, marks: map[preserver.Key]uint64{}}
}

func (b *book) Connect(_ context.Context, _ uint64, closed func(), done func(error)) {
	b.mu.Lock()
	b.closed = closed
	b.mu.Unlock()
	done(nil)
}

func (b *book) ClientNames(_ context.Context, _ uint64, from int) ([]preserver.Newest, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(b.kept), func(a, b preserver.Key) int {
		return strings.Compare(a.Owner.Role+"/"+a.Name, b.Owner.Role+"/"+b.Name)
	})
	if from >= len(keys) {
		return nil, -1, nil
	}
	all := b.kept[keys[from]]
	last := all[len(all)-1]
	return []preserver.Newest{{Key: keys[from], Place: max(last.Place, b.marks[keys[from]]), Ended: last.Ended}}, from + 1, nil
}

func (b *book) ClientOutcomes(_ context.Context, _ uint64, key preserver.Key, limit int) (preserver.Shown, error) {
	if b.hold != nil {
		b.held <- struct{}{}
		<-b.hold
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.kept[key])
	slices.Reverse(all)
	if len(all) > limit {
		return preserver.Shown{Outcomes: all[:limit], More: true}, nil
	}
	return preserver.Shown{Outcomes: all}, nil
}

// end adds an outcome.
func (b *book) end(key preserver.Key) uint64 {
	b.mu.Lock()
	b.place += 2
	place := b.place
	o := preserver.Outcome{Least: place, Place: place, Opened: 1, Ended: int64(place), TTL: 60000, Status: txn.Committed}
	b.kept[key] = append(b.kept[key], o)
	b.mu.Unlock()
	b.topics.Changed(0, coordinator.OutcomeChange{Key: key, Place: place, Millis: o.Ended})
	return place
}

// forget takes away all but the newest keep outcomes.
func (b *book) forget(key preserver.Key, keep int) {
	b.mu.Lock()
	all := b.kept[key]
	if len(all) <= keep {
		b.mu.Unlock()
		return
	}
	b.place += 2
	place := b.place
	b.kept[key], b.marks[key] = all[len(all)-keep:], place
	if keep == 0 {
		delete(b.kept, key)
		delete(b.marks, key)
	}
	b.mu.Unlock()
	b.topics.Changed(0, coordinator.OutcomeChange{Key: key, Place: place, Millis: int64(place), Emptied: keep == 0})
}

// table is what a reader that has read everything must know.
func (b *book) table() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]uint64{}
	for key, outcomes := range b.kept {
		for _, o := range outcomes {
			all[key.Name] = append(all[key.Name], o.Least)
		}
	}
	table := map[string]string{}
	for name, ids := range all {
		slices.Sort(ids)
		slices.Reverse(ids)
		table[name] = fmt.Sprint(ids)
	}
	return table
}

// peer is a client that folds what it is given.
type peer struct {
	t            testing.TB
	from         uint64 // the id that it came back with: it knows that message and drops it, as clients do
	mu           sync.Mutex
	table        map[string]string
	values       []Value
	ids          []uint64
	active       bool
	disconnected chan struct{}
	once         sync.Once
}

func newPeer(t testing.TB) *peer {
	return &peer{t: t, table: map[string]string{}, disconnected: make(chan struct{})}
}

func (p *peer) Message(d cnx.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.EntryID == p.from {
		return
	}
	p.ids = append(p.ids, d.EntryID)
	metadata, content, err := pulsarproto.ParsePayload(d.Payload)
	if err != nil {
		p.t.Error(err)
		return
	}
	if metadata.GetNullValue() != (len(content) == 0) {
		p.t.Errorf("null_value %t with %d bytes", metadata.GetNullValue(), len(content))
	}
	if metadata.GetNullValue() {
		delete(p.table, metadata.GetPartitionKey())
		return
	}
	var v Value
	if err := json.Unmarshal(content, &v); err != nil {
		p.t.Error(err)
		return
	}
	p.values = append(p.values, v)
	var ids []uint64
	for _, o := range v.Outcomes {
		var most, least uint64
		if _, err := fmt.Sscanf(o.Txn, "(%d,%d)", &most, &least); err != nil {
			p.t.Error(err)
		}
		ids = append(ids, least)
	}
	p.table[metadata.GetPartitionKey()] = fmt.Sprint(ids)
}

func (p *peer) Full() bool                   { return false }
func (p *peer) Disconnect()                  { p.once.Do(func() { close(p.disconnected) }) }
func (p *peer) Alive(context.Context) bool   { return true }
func (p *peer) ReachedEndOfTopic()           {}
func (p *peer) Peer() cnx.Peer               { return cnx.Peer{} }
func (p *peer) ActiveConsumerChange(is bool) { p.mu.Lock(); p.active = is; p.mu.Unlock() }

func (p *peer) last() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) == 0 {
		return 0
	}
	return p.ids[len(p.ids)-1]
}

// again is the client as it comes back, with the last id that it saw.
func (p *peer) again() *peer {
	next := newPeer(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	next.table, next.from = maps.Clone(p.table), p.from
	if len(p.ids) > 0 {
		next.from = p.ids[len(p.ids)-1]
		next.ids = []uint64{next.from}
	}
	return next
}

func (p *peer) count() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.ids) }

// await polls until ok.
func await(t interface{ Fatalf(string, ...any) }, what string, ok func() bool) {
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

func newTopics(maxValueBytes int) *book {
	b := newBook()
	b.topics = New(b, Options{Coordinators: 1, MaxValueBytes: maxValueBytes})
	return b
}

var topicName = topicname.Name{Domain: topicname.Persistent, Tenant: "pulsar", Namespace: "system", Local: "__terminated_txn_state_0"}

// reader is the SUBSCRIBE of a reader that starts behind id; 0: from earliest.
func reader(id uint64) *pulsarproto.CommandSubscribe {
	cmd := &pulsarproto.CommandSubscribe{
		Subscription: proto.String("r"), Durable: proto.Bool(false), SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(),
		StartMessageId: &pulsarproto.MessageIdData{LedgerId: proto.Uint64(1<<64 - 1), EntryId: proto.Uint64(1<<64 - 1)},
	}
	if id > 0 {
		cmd.StartMessageId = &pulsarproto.MessageIdData{LedgerId: proto.Uint64(ledger), EntryId: &id}
	}
	return cmd
}

func (b *book) subscribe(t testing.TB, cmd *pulsarproto.CommandSubscribe, p *peer) cnx.Consumer {
	t.Helper()
	c, err := b.topics.Subscribe(t.Context(), topicName, cnx.Caller{}, cmd, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func key(owner, name string) preserver.Key {
	return preserver.Key{Owner: txn.Owner{Role: owner, Known: owner != ""}, Name: name}
}

// TestReadersFollow: however outcomes come and go, and readers come, go with their last id and are slow, a reader that has read
// everything knows what the coordinator keeps (P-18, P-22, P-25), and ids only grow.
func TestReadersFollow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newTopics(1 << 20)
		defer b.topics.Close()
		p := newPeer(t)
		var c cnx.Consumer
		attach := func() {
			p = p.again()
			c = b.subscribe(t, reader(p.from), p)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			k := key(rapid.SampledFrom([]string{"", "alice"}).Draw(rt, "owner"), rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name"))
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0, 1, 2:
				b.end(k)
			case 3:
				b.forget(k, rapid.IntRange(0, 1).Draw(rt, "keep"))
			case 4:
				if c == nil {
					attach()
				} else {
					c.Close()
					c = nil
				}
			case 5:
				if c != nil {
					c.Flow(rapid.Uint32Range(1, 3).Draw(rt, "permits"))
				}
			case 6: // a new term
				if c != nil {
					b.closed()
					await(rt, "CLOSE_CONSUMER", func() bool { <-p.disconnected; return true })
					c.Close()
					c = nil
				}
			}
		}
		if c == nil {
			attach()
		}
		c.Flow(1000)
		want := b.table()
		await(rt, fmt.Sprint(want), func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return maps.Equal(p.table, want)
		})
		c.Close()
		if !slices.IsSorted(p.ids) || len(slices.Compact(slices.Clone(p.ids))) != len(p.ids) {
			rt.Fatalf("ids %v do not grow", p.ids)
		}
	})
}

// TestBusyNameIsGivenOnce: a slow reader gets the newest of a name.
func TestBusyNameIsGivenOnce(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	b.end(key("", "quiet"))
	p := newPeer(t)
	c := b.subscribe(t, reader(0), p)
	defer c.Close()
	for range 1000 {
		b.end(key("", "busy"))
	}
	c.Flow(10)
	await(t, "both names", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return maps.Equal(p.table, b.table()) })
	if n := p.count(); n != 2 {
		t.Errorf("%d messages of 2 names", n)
	}
	if n := len(b.topics.all[0].reading.view.order); n > 100 {
		t.Errorf("%d steps for 2 names", n)
	}
}

// TestNothingIsHeldWithoutReaders: the names leave memory with the last reader.
func TestNothingIsHeldWithoutReaders(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	for i := range 100 {
		b.end(key("", fmt.Sprint(i)))
	}
	c := b.subscribe(t, reader(0), newPeer(t))
	if b.topics.all[0].reading == nil {
		t.Fatal("nothing is held with a reader")
	}
	c.Close()
	if topic := b.topics.all[0]; topic.reading != nil || len(topic.subscriptions) != 0 {
		t.Error("names are held without readers")
	}
}

// TestValueIsBounded holds P-21: the oldest outcomes stay out, and the value says so.
func TestValueIsBounded(t *testing.T) {
	const limit = 2000
	b := newTopics(limit)
	defer b.topics.Close()
	for range 100 {
		b.end(key("alice", "n"))
	}
	newest := b.end(key("bob", "n"))
	p := newPeer(t)
	c := b.subscribe(t, reader(0), p)
	defer c.Close()
	c.Flow(1)
	await(t, "the message", func() bool { return p.count() == 1 })
	v := p.values[0]
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > limit || len(text) < limit/2 || !v.Truncated || len(v.Outcomes) < 5 {
		t.Errorf("%d bytes, truncated %t, %d outcomes", len(text), v.Truncated, len(v.Outcomes))
	}
	if first := v.Outcomes[0]; first.Txn != fmt.Sprintf("(0,%d)", newest) || first.Owner != "bob" {
		t.Errorf("the newest is %+v, want %d of bob", first, newest)
	}
}

// TestAccess holds P-19: super-users read, others are not told whether the topic exists, and nobody writes.
func TestAccess(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	absent := topicName
	absent.Local = "__terminated_txn_state_5"
	user, super := cnx.Caller{Role: "u", Known: true}, cnx.Caller{Role: "s", Known: true, Super: true}
	for _, c := range []struct {
		name   topicname.Name
		caller cnx.Caller
		want   error
	}{
		{topicName, user, errNotAuthorized}, {absent, user, errNotAuthorized},
		{topicName, super, nil}, {absent, super, errNotFound}, {topicName, cnx.Caller{}, nil},
	} {
		consumer, err := b.topics.Subscribe(t.Context(), c.name, c.caller, reader(0), newPeer(t))
		if !errors.Is(err, c.want) {
			t.Errorf("%v reads %s: %v, want %v", c.caller, c.name, err, c.want)
		}
		if consumer != nil {
			consumer.Close()
		}
		if err := b.topics.Produce(c.name, c.caller); c.want != nil && !errors.Is(err, c.want) || c.want == nil && !errors.Is(err, txn.ErrNotAllowed) {
			t.Errorf("%v writes %s: %v", c.caller, c.name, err)
		}
	}
}

func TestServes(t *testing.T) {
	for text, want := range map[string]bool{
		topicName.String(): true,
		"persistent://pulsar/system/__terminated_txn_state_01":            false,
		"persistent://pulsar/system/__terminated_txn_state_":              false,
		"persistent://pulsar/system/__terminated_txn_state_0-partition-0": false,
		"persistent://public/default/__terminated_txn_state_0":            false,
		"non-persistent://pulsar/system/__terminated_txn_state_0":         false,
		"persistent://pulsar/system/__terminated_txn_state_99":            true,
	} {
		name, err := topicname.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if Serves(name) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}

func durable(kind pulsarproto.CommandSubscribe_SubType, position pulsarproto.CommandSubscribe_InitialPosition) *pulsarproto.CommandSubscribe {
	return &pulsarproto.CommandSubscribe{
		Subscription: proto.String("d"), SubType: &kind, InitialPosition: &position, ReadCompacted: proto.Bool(true),
	}
}

func id(place uint64) *pulsarproto.MessageIdData {
	return &pulsarproto.MessageIdData{LedgerId: proto.Uint64(ledger), EntryId: &place}
}

func ack(places ...uint64) *pulsarproto.CommandAck {
	cmd := &pulsarproto.CommandAck{AckType: pulsarproto.CommandAck_Individual.Enum()}
	for _, place := range places {
		cmd.MessageId = append(cmd.MessageId, id(place))
	}
	return cmd
}

// TestCursor: what a durable consumer did not acknowledge comes again, to it and to the next one; SEEK and the last id.
func TestCursor(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	var places []uint64
	for _, name := range []string{"a", "b", "c"} {
		places = append(places, b.end(key("", name)))
	}
	cmd := durable(pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Earliest)
	p := newPeer(t)
	c := b.subscribe(t, cmd, p)
	if _, err := b.topics.Subscribe(t.Context(), topicName, cnx.Caller{}, cmd, newPeer(t)); !errors.Is(err, errConsumerBusy) {
		t.Errorf("a second Exclusive consumer: %v", err)
	}
	c.Flow(100)
	want := func(p *peer, places ...uint64) {
		t.Helper()
		await(t, fmt.Sprint(places), func() bool { p.mu.Lock(); defer p.mu.Unlock(); return slices.Equal(p.ids, places) })
	}
	want(p, places...)
	acknowledge := func(cmd *pulsarproto.CommandAck) {
		t.Helper()
		c.Ack(cmd, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	acknowledge(ack(places[0], places[2]))
	c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
	want(p, places[0], places[1], places[2], places[1], places[2])
	c.LastMessageID(func(last, mark *pulsarproto.MessageIdData, err error) {
		if err != nil || last.GetEntryId() != places[2] || mark.GetEntryId() != places[1]-1 {
			t.Errorf("last %v, mark delete %v, %v", last, mark, err)
		}
	})
	cumulative := ack(places[1])
	cumulative.AckType = pulsarproto.CommandAck_Cumulative.Enum()
	acknowledge(cumulative)
	c.Close()
	p = newPeer(t)
	c = b.subscribe(t, cmd, p)
	c.Flow(100)
	want(p, places[2])

	for _, seek := range []struct {
		cmd  *pulsarproto.CommandSeek
		want []uint64
	}{
		{&pulsarproto.CommandSeek{MessageId: id(places[1])}, places[1:]},
		{&pulsarproto.CommandSeek{MessageId: reader(0).StartMessageId}, places},
		{&pulsarproto.CommandSeek{MessagePublishTime: proto.Uint64(places[2])}, places[2:]},
	} {
		c.Seek(seek.cmd, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		<-p.disconnected
		c.Close()
		p = newPeer(t)
		c = b.subscribe(t, cmd, p)
		c.Flow(100)
		want(p, seek.want...)
	}
	c.Unsubscribe(false, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if n := len(b.topics.all[0].subscriptions); n != 0 {
		t.Errorf("%d subscriptions after UNSUBSCRIBE", n)
	}
	c.Close()
}

// TestFailover: the next consumer goes on with what the first did not acknowledge.
func TestFailover(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	place := b.end(key("", "a"))
	cmd := durable(pulsarproto.CommandSubscribe_Failover, pulsarproto.CommandSubscribe_Earliest)
	p, q := newPeer(t), newPeer(t)
	first, second := b.subscribe(t, cmd, p), b.subscribe(t, cmd, q)
	defer second.Close()
	first.Flow(10)
	second.Flow(10)
	await(t, "the message", func() bool { return p.last() == place })
	if q.count() != 0 || q.active || !p.active {
		t.Error("the second consumer is active")
	}
	first.Close()
	await(t, "the message again", func() bool { return q.last() == place })
}

// TestTombstonesAreBounded: of many names that became empty the newest are remembered.
func TestTombstonesAreBounded(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	c := b.subscribe(t, reader(0), newPeer(t))
	for i := range 3 * maxTombstones {
		k := key("", fmt.Sprint(i))
		b.end(k)
		b.forget(k, 0)
	}
	topic := b.topics.all[0]
	if n := len(topic.empty.order); n > 2*maxTombstones {
		t.Errorf("%d tombstones", n)
	}
	if n := len(topic.reading.view.names); n > maxTombstones {
		t.Errorf("%d names of which nothing is left are held", n)
	}
	c.Close()
	p := newPeer(t)
	c = b.subscribe(t, reader(1), p)
	defer c.Close()
	c.Flow(10 * maxTombstones)
	await(t, "the last tombstone", func() bool { return p.last() == b.place })
	if n := p.count(); n != maxTombstones {
		t.Errorf("%d tombstones are given, want %d", n, maxTombstones)
	}
}

// TestSeekWhileAMessageIsMade: what was on its way when the cursor moved does not move it on.
func TestSeekWhileAMessageIsMade(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	var places []uint64
	for _, name := range []string{"a", "b"} {
		places = append(places, b.end(key("", name)))
	}
	cmd := durable(pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Earliest)
	p := newPeer(t)
	c := b.subscribe(t, cmd, p)
	defer c.Close()
	c.Flow(1)
	await(t, "the first", func() bool { return p.last() == places[0] })
	b.hold, b.held = make(chan struct{}), make(chan struct{}, 10)
	c.Flow(2)
	<-b.held
	c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
	close(b.hold)
	want := []uint64{places[0], places[0], places[1]}
	await(t, fmt.Sprint(want), func() bool { p.mu.Lock(); defer p.mu.Unlock(); return slices.Equal(p.ids, want) })
}
