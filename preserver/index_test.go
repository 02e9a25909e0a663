package preserver_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var (
	alice = txn.Owner{Role: "alice", Known: true}
	bob   = txn.Owner{Role: "bob", Known: true}
)

// fixture is an index with an own sequence of ids and places.
type fixture struct {
	*preserver.Index
	last uint64
}

func newFixture(opts preserver.Options) *fixture { return &fixture{Index: preserver.New(opts)} }

// end ends one transaction of key at the given time and returns its id.
func (f *fixture) end(key preserver.Key, now int64) uint64 {
	f.last++
	b := f.Hold(key)
	f.Put(b, preserver.Outcome{Least: f.last, Place: f.last, Opened: now - 5, Ended: now, TTL: 60_000, Status: txn.Committed}, now)
	f.Release(b)
	return f.last
}

func (f *fixture) shown(now int64, ids ...uint64) string {
	text := ""
	for _, id := range ids {
		if _, _, ok := f.Get(id, now); ok {
			text += fmt.Sprintf("%d ", id)
		}
	}
	return text
}

// TestOutcomeComesBackWhole holds P-8: what is told is what was put, a copy.
func TestOutcomeComesBackWhole(t *testing.T) {
	x := preserver.New(preserver.Options{Count: 10, Retention: 1000, Max: 10})
	key := preserver.Key{Owner: alice, Name: "flink"}
	for i, want := range []preserver.Outcome{
		{Least: 1 << 52, Place: 1, Opened: 100, Ended: 200, TTL: 60_000, Status: txn.Committed},
		{Least: 7, Place: 1<<60 - 1, Opened: 0, Ended: math.MaxUint32, TTL: math.MaxUint32, Status: txn.Aborted, TimedOut: true},
	} {
		b := x.Hold(key)
		if !x.Put(b, want, want.Ended) {
			t.Fatalf("outcome %d is not kept", i)
		}
		x.Release(b)
		got, owner, ok := x.Get(want.Least, want.Ended)
		if !ok || got != want || owner != key {
			t.Errorf("outcome %d: got %+v of %v, %t, want %+v", i, got, owner, ok, want)
		}
	}
}

func TestOutcomeOutOfRangeIsCut(t *testing.T) {
	x := preserver.New(preserver.Options{Count: 10, Retention: math.MaxInt32, Max: 10})
	b := x.Hold(preserver.Key{Name: "n"})
	ended := int64(math.MaxUint32) + 1000
	x.Put(b, preserver.Outcome{Least: 1, Place: 1, Opened: 0, Ended: ended, TTL: math.MaxUint64, Status: txn.Aborted}, ended)
	got, _, _ := x.Get(1, ended)
	if got.Opened != 1000 || got.TTL != math.MaxUint32 {
		t.Errorf("got opened %d, ttl %d, want both cut to 32 bits of milliseconds", got.Opened, got.TTL)
	}
}

// TestCountCutsOutOldest: the newest Count of a name stay, older ones only while they are younger than MinTime.
func TestCountCutsOutOldest(t *testing.T) {
	for _, c := range []struct {
		name          string
		minTime, read int64
		want          string
	}{
		{"without protection", 0, 104, "3 4 "},
		{"all protected", 1000, 104, "1 2 3 4 "},
		{"protection just passed for the first", 100, 201, "2 3 4 "},
		{"protection passed for all", 100, 900, "3 4 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(preserver.Options{Count: 2, UnnamedCount: 1, Retention: 10_000, MinTime: c.minTime, Max: 100})
			for i := range int64(4) {
				f.end(preserver.Key{Name: "n"}, 101+i)
			}
			if got := f.shown(c.read, 1, 2, 3, 4); got != c.want {
				t.Errorf("shown: %s, want %s", got, c.want)
			}
		})
	}
}

// TestRetention holds P-24: age counts from the end, and is exact at lookup although memory is reclaimed later.
func TestRetention(t *testing.T) {
	f := newFixture(preserver.Options{Count: 10, Retention: 100, Max: 100})
	first, second := f.end(preserver.Key{Name: "n"}, 1000), f.end(preserver.Key{Name: "n"}, 1050)
	for _, c := range []struct {
		now  int64
		want string
	}{{1099, "1 2 "}, {1100, "2 "}, {1149, "2 "}, {1150, ""}} {
		if got := f.shown(c.now, first, second); got != c.want {
			t.Errorf("at %d: %q, want %q", c.now, got, c.want)
		}
	}
	first = f.end(preserver.Key{Name: "n"}, 2000)
	f.end(preserver.Key{Name: "n"}, 2050)
	if f.Len() != 2 {
		t.Fatalf("Len %d before the pass, want 2", f.Len())
	}
	if n, done := f.Expire(2100, 10); n != 1 || !done {
		t.Errorf("Expire forgot %d, done %t, want 1, true", n, done)
	}
	if _, _, held := f.Held(first); held || f.Len() != 1 {
		t.Errorf("expired outcome is still held, Len %d", f.Len())
	}
}

// Promise 2: what was not known once is never known again, whatever the clock does, and whatever a later load is allowed to keep.
func TestForgottenStaysForgotten(t *testing.T) {
	key := preserver.Key{Name: "n"}
	for _, c := range []struct {
		name string
		opts preserver.Options
		now  int64 // of the lookup that finds nothing
	}{
		{"by time", preserver.Options{Count: 10, Retention: 100, Max: 100}, 1200},
		{"by count", preserver.Options{Count: 2, Retention: 10_000, MinTime: 50, Max: 100}, 1100},
		{"by the cap", preserver.Options{Count: 10, Retention: 10_000, Max: 2}, 1010},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(c.opts)
			ids := []uint64{f.end(key, 1000), f.end(key, 1001), f.end(key, 1002)}
			if got := f.shown(c.now, ids[0]); got != "" {
				t.Fatalf("shown at %d: %s", c.now, got)
			}
			if got := f.shown(1002, ids[0]); got != "" {
				t.Errorf("shown after the clock went back: %s", got)
			}
			generous := preserver.New(preserver.Options{Count: 100, Retention: 1 << 40, MinTime: 1 << 40, Max: 100})
			for i, id := range ids {
				generous.Load(key, preserver.Outcome{Least: id, Place: uint64(i + 1), Ended: 1000 + int64(i), Status: txn.Committed})
			}
			f.TakeForgotten(generous.LoadForgotten)
			generous.Loaded(1002)
			if _, _, known := generous.Get(ids[0], 1002); known {
				t.Error("shown after a load that may keep it")
			}
			if _, _, known := generous.Get(ids[2], 1002); !known && c.name != "by time" {
				t.Error("a newer outcome is gone as well")
			}
		})
	}
}

// TestExpireStopsAtBudget: a pass goes on where it stopped, over all buckets.
func TestExpireStopsAtBudget(t *testing.T) {
	f := newFixture(preserver.Options{Count: 10, Retention: 100, Max: 100})
	for i := range 9 {
		f.end(preserver.Key{Name: fmt.Sprint("n", i%3)}, 1000)
	}
	for pass, want := range []struct {
		forgotten int
		done      bool
	}{{4, false}, {4, false}, {1, true}} {
		if n, done := f.Expire(2000, 4); n != want.forgotten || done != want.done {
			t.Errorf("pass %d: %d, %t, want %d, %t", pass, n, done, want.forgotten, want.done)
		}
	}
	if f.Len() != 0 || f.Names() != 0 || f.Bytes() != 0 {
		t.Errorf("left over: %d outcomes, %d names, %d bytes", f.Len(), f.Names(), f.Bytes())
	}
}

// TestFloodingName: at the cap one flooding name never costs a quiet one its outcomes, not even with its own protected by age.
func TestFloodingName(t *testing.T) {
	const limit = 1000
	f := newFixture(preserver.Options{Count: 20, UnnamedCount: 50, Retention: 1 << 40, MinTime: 1 << 30, Max: limit})
	quiet := map[preserver.Key][]uint64{}
	for i := range 20 {
		key := preserver.Key{Owner: alice, Name: fmt.Sprint("quiet-", i)}
		for range 20 {
			quiet[key] = append(quiet[key], f.end(key, 1000))
		}
	}
	unnamed := preserver.Key{Owner: bob}
	for range 50 {
		quiet[unnamed] = append(quiet[unnamed], f.end(unnamed, 1000))
	}
	for i := range int64(10 * limit) {
		f.end(preserver.Key{Owner: bob, Name: "flood"}, 1000+i)
		if f.Len() > limit {
			t.Fatalf("%d outcomes held, the cap is %d", f.Len(), limit)
		}
	}
	for key, ids := range quiet {
		for _, id := range ids {
			if _, _, ok := f.Get(id, 1000+10*limit); !ok {
				t.Errorf("%v lost outcome %d to a flooding name", key, id)
			}
		}
	}
}

// TestCapAmongNamesWithinCount: if nobody exceeds its count, the largest loses.
func TestCapAmongNamesWithinCount(t *testing.T) {
	f := newFixture(preserver.Options{Count: 100, Retention: 1 << 40, Max: 10})
	small := []uint64{f.end(preserver.Key{Name: "small"}, 1), f.end(preserver.Key{Name: "small"}, 2)}
	for i := range int64(50) {
		f.end(preserver.Key{Name: "large"}, 3+i)
	}
	if got, want := f.shown(60, small...), "1 2 "; got != want {
		t.Errorf("small name shows %q, want %q", got, want)
	}
}

// TestCapTakesFromTheOneAboveItsCount: a large bucket within its count loses nothing while a smaller one exceeds its own.
func TestCapTakesFromTheOneAboveItsCount(t *testing.T) {
	f := newFixture(preserver.Options{Count: 2, UnnamedCount: 100, Retention: 1 << 40, MinTime: 1 << 30, Max: 53})
	var unnamed []uint64
	for range 50 {
		unnamed = append(unnamed, f.end(preserver.Key{}, 1))
	}
	for range 20 {
		f.end(preserver.Key{Name: "flood"}, 2)
	}
	for _, id := range unnamed {
		if _, _, ok := f.Get(id, 3); !ok {
			t.Errorf("outcome %d, within its count, went before those beyond theirs", id)
		}
	}
}

// TestCapAmongEqualNames: of names with as many outcomes each, the one with the oldest loses it, and not the one whose transaction has
// just ended.
func TestCapAmongEqualNames(t *testing.T) {
	const limit, all = 10, 30
	f := newFixture(preserver.Options{Count: 100, Retention: 1 << 40, Max: limit})
	for i := range int64(all) {
		f.end(preserver.Key{Name: fmt.Sprint("client-", i)}, i)
	}
	for id := uint64(1); id <= all; id++ {
		if _, _, held := f.Held(id); held != (id > all-limit) {
			t.Errorf("outcome %d of %d held: %t, want the newest %d", id, all, held, limit)
		}
	}
}

// TestNamesPerOwner holds P-26 and P-27: names are counted per owner, by live transactions and outcomes.
func TestNamesPerOwner(t *testing.T) {
	f := newFixture(preserver.Options{Count: 5, UnnamedCount: 5, Retention: 100, Max: 100, NamesPerOwner: 2})
	f.end(preserver.Key{Owner: alice, Name: "a"}, 1000)
	live := f.Hold(preserver.Key{Owner: alice, Name: "b"})
	for _, c := range []struct {
		key  preserver.Key
		want bool
	}{
		{preserver.Key{Owner: alice, Name: "a"}, true},
		{preserver.Key{Owner: alice, Name: "b"}, true},
		{preserver.Key{Owner: alice, Name: "c"}, false},
		{preserver.Key{Owner: alice}, true},
		{preserver.Key{Owner: bob, Name: "c"}, true},
		{preserver.Key{Name: "c"}, true},
	} {
		if got := f.Admits(c.key); got != c.want {
			t.Errorf("Admits(%v) = %t, want %t", c.key, got, c.want)
		}
	}
	f.Release(live)
	if !f.Admits(preserver.Key{Owner: alice, Name: "c"}) {
		t.Error("a name without transactions and outcomes still counts")
	}
	if _, _, ok := f.Get(1, 1001); !ok {
		t.Error("the outcome of another name went with it")
	}
}

// TestQuotaBelongsToOwnerAndName holds P-27: the same name of another owner pushes nothing out.
func TestQuotaBelongsToOwnerAndName(t *testing.T) {
	f := newFixture(preserver.Options{Count: 2, Retention: 1 << 40, Max: 1000})
	first := f.end(preserver.Key{Owner: alice, Name: "job"}, 1)
	for range 100 {
		f.end(preserver.Key{Owner: bob, Name: "job"}, 2)
	}
	if _, _, ok := f.Get(first, 3); !ok {
		t.Error("bob's transactions of the same name cost alice an outcome")
	}
}

// TestLiveTransactionsCountNothing holds P-23: more live transactions than Count evict nothing, and each is remembered at its
// end.
func TestLiveTransactionsCountNothing(t *testing.T) {
	f := newFixture(preserver.Options{Count: 3, Retention: 1 << 40, Max: 100})
	key := preserver.Key{Name: "n"}
	kept := []uint64{f.end(key, 1), f.end(key, 2), f.end(key, 3)}
	for range 10 {
		defer f.Release(f.Hold(key))
	}
	if got, want := f.shown(4, kept...), "1 2 3 "; got != want {
		t.Errorf("with ten live transactions %q is shown, want %q", got, want)
	}
	fresh := f.end(key, 5)
	if got, want := f.shown(5, fresh), "4 "; got != want {
		t.Errorf("just ended: %q, want %q", got, want)
	}
}

func TestOffKeepsNothing(t *testing.T) {
	for name, opts := range map[string]preserver.Options{
		"feature off":  {Count: 0, UnnamedCount: 10, Retention: 1000, Max: 100},
		"unnamed none": {Count: 10, UnnamedCount: 0, Retention: 1000, Max: 100},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(opts)
			id := f.end(preserver.Key{}, 10)
			f.Load(preserver.Key{}, preserver.Outcome{Least: 9, Place: 9, Ended: 10, Status: txn.Committed})
			f.Loaded(10)
			if got := f.shown(10, id, 9); got != "" || f.Len() != 0 || f.Bytes() != 0 {
				t.Errorf("shown %q, Len %d, Bytes %d, want nothing", got, f.Len(), f.Bytes())
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, names := range []int{1, 1000} {
		b.Run(fmt.Sprint(names, " names"), func(b *testing.B) {
			x := preserver.New(preserver.Options{Count: 1000, Retention: 1 << 40, Max: 100_000})
			buckets := make([]*preserver.Bucket, names)
			for i := range buckets {
				buckets[i] = x.Hold(millionKey(i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.Put(buckets[i%names], millionOutcome(i), int64(i))
			}
		})
	}
}
