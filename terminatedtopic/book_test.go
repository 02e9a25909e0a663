package terminatedtopic

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

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
	closed func(bool)
	hold   chan struct{} // if set, outcomes are told when it is closed
	held   chan struct{} // gets one when somebody waits for that
	topics *Topics
}

func newBook() *book {
	return &book{kept: map[preserver.Key][]preserver.Outcome{}, marks: map[preserver.Key]uint64{}}
}

func (b *book) Connect(_ context.Context, _ uint64, closed func(bool), done func(error)) {
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
	active, dead bool
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
func (p *peer) Alive(context.Context) bool   { return !p.dead }
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
