package terminatedtopic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

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
					b.closed(false)
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
	if n := len((*b.topics.all.Load())[0].reading.view.order); n > 100 {
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
	if (*b.topics.all.Load())[0].reading == nil {
		t.Fatal("nothing is held with a reader")
	}
	c.Close()
	if topic := (*b.topics.all.Load())[0]; topic.reading != nil || len(topic.subscriptions) != 0 {
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
	topic := (*b.topics.all.Load())[0]
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
