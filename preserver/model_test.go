package preserver_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// model is the index as slices: what it must do, in the plainest way.
type model struct {
	opts    preserver.Options
	buckets map[preserver.Key][]preserver.Outcome // oldest first
	gone    map[uint64]bool
}

func (m *model) limit(key preserver.Key) int {
	if key.Name == "" {
		return m.opts.UnnamedCount
	}
	return m.opts.Count
}

func (m *model) total() int {
	n := 0
	for _, all := range m.buckets {
		n += len(all)
	}
	return n
}

func (m *model) evict(key preserver.Key) {
	m.gone[m.buckets[key][0].Least] = true
	m.buckets[key] = m.buckets[key][1:]
}

func (m *model) overCount(key preserver.Key, now int64) bool {
	all := m.buckets[key]
	return len(all) > m.limit(key) && all[0].Ended+m.opts.MinTime <= now
}

// losers are the keys of which one must lose its oldest at the cap: several if they are equal.
func (m *model) losers() []preserver.Key {
	var best []preserver.Key
	bestExcess, bestLen := -1, -1
	for key, all := range m.buckets {
		excess := max(len(all)-m.limit(key), 0)
		switch {
		case len(all) == 0 || excess < bestExcess || excess == bestExcess && len(all) < bestLen:
		case excess == bestExcess && len(all) == bestLen:
			best = append(best, key)
		default:
			best, bestExcess, bestLen = []preserver.Key{key}, excess, len(all)
		}
	}
	return best
}

// cap follows the choice of the index among equals and fails if it chose anybody else.
func (m *model) cap(t *rapid.T, x *preserver.Index) {
	for _, key := range m.losers() {
		if _, _, held := x.Held(m.buckets[key][0].Least); !held {
			m.evict(key)
			return
		}
	}
	t.Fatalf("at the cap nobody of %v lost its oldest", m.losers())
}

func (m *model) put(t *rapid.T, x *preserver.Index, key preserver.Key, o preserver.Outcome, now int64) {
	m.buckets[key] = append(m.buckets[key], o)
	for i := 0; i < 2 && m.overCount(key, now); i++ {
		m.evict(key)
	}
	for i := 0; i < 2 && m.total() > m.opts.Max; i++ {
		m.cap(t, x)
	}
}

func (m *model) expire(now int64) {
	for key := range m.buckets {
		for len(m.buckets[key]) > 0 && (m.buckets[key][0].Ended+m.opts.Retention <= now || m.overCount(key, now)) {
			m.evict(key)
		}
	}
}

// check compares everything that can be asked.
func (m *model) check(t *rapid.T, x *preserver.Index, now int64) {
	if x.Len() != m.total() {
		t.Fatalf("Len %d, want %d", x.Len(), m.total())
	}
	for key, all := range m.buckets {
		for i, want := range all {
			got, owner, held := x.Held(want.Least)
			if !held || got != want || owner != key {
				t.Fatalf("Held(%d) = %+v, %v, %t, want %+v of %v", want.Least, got, owner, held, want, key)
			}
			shown := want.Ended+m.opts.Retention > now && (len(all)-1-i < m.limit(key) || want.Ended+m.opts.MinTime > now)
			if _, _, ok := x.Get(want.Least, now); ok != shown {
				t.Fatalf("Get(%d) at %d: %t, want %t", want.Least, now, ok, shown)
			}
			if !shown {
				m.evict(key) // what was not shown once is never shown again
			}
		}
	}
	names := 0
	for key, all := range m.buckets {
		if key.Name != "" && len(all) > 0 {
			names++
		}
	}
	if x.Names() != names {
		t.Fatalf("Names %d, want %d", x.Names(), names)
	}
	for id := range m.gone {
		if _, _, held := x.Held(id); held {
			t.Fatalf("%d was evicted and is held", id)
		}
	}
}

// load builds an index the way a restart does, from all outcomes ever put, in any order and with copies, and from what was
// forgotten.
func (m *model) load(t *rapid.T, all map[preserver.Key][]preserver.Outcome, forgotten []preserver.Forgotten, now int64) *preserver.Index {
	type entry struct {
		key preserver.Key
		o   preserver.Outcome
	}
	var log []entry
	m.buckets = map[preserver.Key][]preserver.Outcome{}
	for key, outcomes := range all {
		for _, o := range outcomes {
			log = append(log, entry{key, o})
			if !m.gone[o.Least] {
				m.buckets[key] = append(m.buckets[key], o)
			}
		}
	}
	slices.SortFunc(log, func(a, b entry) int { return int(a.o.Place) - int(b.o.Place) })
	if len(log) > 0 {
		log = append(log, log[:rapid.IntRange(0, len(log)).Draw(t, "copies")]...)
	}
	log = rapid.Permutation(log).Draw(t, "log")
	x := preserver.New(m.opts)
	for _, e := range log {
		x.Load(e.key, e.o)
	}
	for _, f := range forgotten {
		x.LoadForgotten(f)
	}
	x.Loaded(now)
	m.expire(now)
	for m.total() > m.opts.Max {
		m.cap(t, x)
	}
	return x
}

// TestIndexFollowsModel puts, expires, reads and reloads at random and compares with the model after each step.
func TestIndexFollowsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			opts: preserver.Options{
				Count: rapid.IntRange(1, 4).Draw(t, "count"), UnnamedCount: rapid.IntRange(1, 6).Draw(t, "unnamed"),
				Retention: rapid.Int64Range(1, 60).Draw(t, "retention"), MinTime: rapid.Int64Range(0, 30).Draw(t, "min time"),
				Max: rapid.IntRange(1, 10).Draw(t, "max"),
			},
			buckets: map[preserver.Key][]preserver.Outcome{}, gone: map[uint64]bool{},
		}
		x := preserver.New(m.opts)
		ever := map[preserver.Key][]preserver.Outcome{}
		now, last, ended := int64(1000), uint64(0), int64(0)
		var forgotten []preserver.Forgotten
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key := preserver.Key{Owner: txn.Owner{Known: true, Role: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")}}
				if n := rapid.IntRange(0, 3).Draw(t, "name"); n > 0 {
					key.Name = fmt.Sprint("n", n)
				}
				last++
				ended = max(ended, now)
				o := preserver.Outcome{Least: last * 7, Place: last, Opened: ended - 3, Ended: ended, TTL: 9, Status: txn.Aborted}
				b := x.Hold(key)
				x.Put(b, o, now)
				x.Release(b)
				ever[key] = append(ever[key], o)
				m.put(t, x, key, o, now)
			},
			"wait": func(t *rapid.T) { now += rapid.Int64Range(1, 20).Draw(t, "ms") },
			"expire": func(*rapid.T) {
				for done := false; !done; {
					_, done = x.Expire(now, 3)
				}
				m.expire(now)
			},
			"step back": func(t *rapid.T) { now = max(1000, now-rapid.Int64Range(1, 40).Draw(t, "ms back")) },
			"reload": func(t *rapid.T) {
				x.TakeForgotten(func(f preserver.Forgotten) { forgotten = append(forgotten, f) })
				x = m.load(t, ever, forgotten, now)
			},
			"": func(t *rapid.T) { m.check(t, x, now) },
		})
	})
}
