package dedup

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

var start = time.Unix(1_700_000_000, 0)

// stored is a store of what drafts write.
type stored struct {
	*State
	values map[uint64][]byte
	marks  map[txn.ID]Sequences
}

func newStored(keep bool) *stored {
	s := &stored{State: New(), values: make(map[uint64][]byte), marks: make(map[txn.ID]Sequences)}
	s.Keep(keep)
	return s
}

// write applies what change does to a draft.
func (s *stored) write(now time.Time, change func(*Draft)) {
	d := s.Draft(now)
	change(&d)
	s.apply(&d)
}

func (s *stored) apply(d *Draft) {
	d.Pages(func(number uint64, value []byte) {
		if len(value) == 0 {
			delete(s.values, number)
		} else {
			s.values[number] = value
		}
	})
	for id := range d.open {
		s.marks[id] = maps.Clone(d.In(id))
	}
	s.Apply(d)
}

func (s *stored) ended(id txn.ID) {
	delete(s.marks, id)
	s.Ended(id)
}

// reload makes the state anew from what is stored.
func (s *stored) reload(t interface{ Fatal(...any) }) {
	keep := s.Keeps()
	s.State = New()
	s.Keep(keep)
	for number, value := range s.values {
		if err := s.RestorePage(number, value); err != nil {
			t.Fatal(err)
		}
	}
	for id, sequences := range s.marks {
		s.Restore(id, maps.Clone(sequences))
	}
}

func TestJudge(t *testing.T) {
	x, y := txn.ID{Least: 1}, txn.ID{Least: 2}
	s := newStored(true)
	judge := func(when string, lowest uint64, in *txn.ID, want Verdict, wantOther txn.ID) {
		t.Helper()
		d := s.Draft(start)
		if got, other := d.Judge("p", lowest, in); got != want || other != wantOther {
			t.Errorf("%s: %d is %v because of %v, want %v because of %v", when, lowest, got, other, want, wantOther)
		}
	}
	judge("at first", 0, nil, Fresh, txn.ID{})
	s.write(start, func(d *Draft) {
		d.Raise("p", 4)
		if got, _ := d.Judge("p", 4, nil); got != Duplicate {
			t.Errorf("4 in the draft that stores it: %v", got)
		}
		d.RaiseIn(x, "p", 6)
		if got, other := d.Judge("p", 6, &y); got != Unknown || other != x {
			t.Errorf("6 in the draft that stores it in x: %v because of %v", got, other)
		}
	})
	for _, reload := range []bool{false, true} {
		when := fmt.Sprint("x open, reload ", reload)
		if reload {
			s.reload(t)
		}
		judge(when, 4, nil, Duplicate, txn.ID{})
		judge(when, 4, &y, Duplicate, txn.ID{})
		judge(when, 5, &x, Duplicate, txn.ID{})
		judge(when, 5, nil, Unknown, x)
		judge(when, 5, &y, Unknown, x)
		judge(when, 7, nil, Fresh, txn.ID{})
		if last, found := s.Last("p"); last != 6 || !found {
			t.Errorf("%s: last %d", when, last)
		}
	}
	s.ended(x)
	judge("x aborted", 5, nil, Fresh, txn.ID{})
	s.write(start, func(d *Draft) { d.RaiseIn(y, "p", 6) })
	s.write(start, func(d *Draft) { d.Commit(y) })
	s.ended(y)
	judge("y committed", 6, &x, Duplicate, txn.ID{})
	if last, _ := s.Last("p"); last != 6 {
		t.Errorf("last %d", last)
	}
	s.Keep(false)
	s.Clear()
	judge("cleared", 0, nil, Fresh, txn.ID{})
	s.write(start, func(d *Draft) { d.Raise("p", 9) })
	if _, found := s.Last("p"); found || s.Names() != 0 {
		t.Error("a topic that does not deduplicate remembers a name")
	}
}

// TestPagesAreFew: producers that began together are written together.
func TestPagesAreFew(t *testing.T) {
	s := newStored(true)
	for i := range 100 {
		s.write(start, func(d *Draft) { d.Raise(fmt.Sprint("producer-", i), 0) })
	}
	if len(s.values) != 4 {
		t.Fatalf("%d pages for 100 names", len(s.values))
	}
	pages := 0
	s.write(start, func(d *Draft) {
		for i := range 64 {
			d.Raise(fmt.Sprint("producer-", i), 7)
		}
		d.Pages(func(_ uint64, value []byte) {
			pages++
			if len(value) > PageBytes {
				t.Errorf("page of %d bytes", len(value))
			}
		})
	})
	if pages != 2 {
		t.Errorf("64 producers change %d pages", pages)
	}
	long := newStored(true)
	for i := range 10 {
		long.write(start, func(d *Draft) { d.Raise(strings.Repeat("x", 1023)+fmt.Sprint(i), 1<<63) })
	}
	for number, value := range long.values {
		if len(value) > PageBytes {
			t.Errorf("page %d of %d bytes", number, len(value))
		}
	}
}

// TestCost: a draft never adds more than it was said to.
func TestCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStored(true)
		for range rapid.IntRange(1, 8).Draw(t, "writes") {
			s.write(start, func(d *Draft) {
				pages, bytes := 0, 0
				for range rapid.IntRange(0, 40).Draw(t, "names") {
					name := strings.Repeat("n", rapid.IntRange(1, 300).Draw(t, "length"))
					p, b := d.Cost(name)
					pages, bytes = pages+p, bytes+b
					if rapid.Bool().Draw(t, "forget") {
						d.Forget(name)
					} else {
						d.Raise(name, rapid.Uint64().Draw(t, "highest"))
					}
				}
				gotPages, gotBytes := 0, 0
				d.Pages(func(_ uint64, value []byte) { gotPages, gotBytes = gotPages+1, gotBytes+len(value) })
				if gotPages > pages || gotBytes > bytes {
					t.Fatalf("%d pages of %d bytes, said %d of %d", gotPages, gotBytes, pages, bytes)
				}
			})
		}
	})
}

func TestStale(t *testing.T) {
	s := newStored(true)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	for i := range 5 {
		s.write(minute(i), func(d *Draft) { d.Raise(fmt.Sprint("n", i), 3) })
	}
	s.reload(t) // the time of use is stored
	none := func(string) bool { return false }
	first := func(name string) bool { return name == "n0" }
	limits := Limits{Names: 5, Inactive: 10 * time.Minute}
	check := func(what string, now time.Time, attached func(string) bool, limits Limits, wantForget, wantTouch []string) {
		t.Helper()
		forget, touch := s.Stale(now, attached, limits)
		if !slices.Equal(forget, wantForget) || !slices.Equal(touch, wantTouch) {
			t.Errorf("%s: forget %q, touch %q; want %q and %q", what, forget, touch, wantForget, wantTouch)
		}
	}
	check("nothing is old", minute(15), none, limits, nil, nil)
	check("the first is old", minute(16), none, limits, []string{"n0"}, nil)
	check("the first is old and in use", minute(16), first, limits, nil, []string{"n0"})
	check("in use for a short time", minute(5), first, limits, nil, nil)
	check("too many", minute(4), first, Limits{Names: 2, Inactive: time.Hour}, []string{"n1", "n2", "n3"}, nil)
	check("the clock goes back", minute(-100), none, limits, nil, nil)
	s.write(minute(16), func(d *Draft) {
		d.Touch("n0")
		d.Forget("n1")
		d.Forget("unknown")
		d.Touch("unknown")
	})
	check("touched", minute(18), none, limits, []string{"n2"}, nil)
	s.reload(t)
	if d := s.Draft(start); s.Names() != 4 || d.find("n0").highest != 3 {
		t.Errorf("%d names left", s.Names())
	}
}

// modelSend is one message as an obviously right model keeps it.
type modelSend struct {
	producer string
	highest  uint64
	in       *txn.ID // nil: good
}

// modelStore is everything that is stored.
type modelStore []modelSend

func (m modelStore) judge(producer string, lowest uint64, in *txn.ID) (verdict Verdict, others []txn.ID) {
	for _, sent := range m {
		if sent.producer != producer || sent.highest < lowest {
			continue
		}
		if sent.in == nil || in != nil && *sent.in == *in {
			return Duplicate, nil
		}
		verdict, others = Unknown, append(others, *sent.in)
	}
	return verdict, others
}

func (m modelStore) last(producer string) (last uint64, found bool) {
	for _, sent := range m {
		if sent.producer == producer {
			last, found = max(last, sent.highest), true
		}
	}
	return last, found
}

// TestAgainstList sends, ends and forgets at random, in drafts that are applied or dropped, reloads, and compares every verdict with
// that of a list.
func TestAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := newStored(true), modelStore{}
		producers := make([]string, 40)
		for i := range producers {
			producers[i] = strings.Repeat("p", 1+i*i%97) + fmt.Sprint(i)
		}
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			before := slices.Clone(model)
			d := s.Draft(start)
			var ends []txn.ID
			touched := make(map[txn.ID]bool)
			for range rapid.IntRange(0, 6).Draw(t, "commands") {
				id := txn.ID{Least: rapid.Uint64Range(0, 4).Draw(t, "transaction")}
				producer := rapid.SampledFrom(producers).Draw(t, "producer")
				switch kind := rapid.IntRange(0, 9).Draw(t, "command"); {
				case kind == 0 && !touched[id]: // commit
					touched[id], ends = true, append(ends, id)
					d.Commit(id)
					for i := range model {
						if model[i].in != nil && *model[i].in == id {
							model[i].in = nil
						}
					}
				case kind == 1 && !touched[id]: // abort
					touched[id], ends = true, append(ends, id)
					model = slices.DeleteFunc(slices.Clone(model), func(m modelSend) bool { return m.in != nil && *m.in == id })
				case kind == 2:
					d.Forget(producer)
					model = slices.DeleteFunc(slices.Clone(model), func(m modelSend) bool { return m.producer == producer && m.in == nil })
				case kind == 3:
					d.Touch(producer)
				case kind > 3 && !slices.Contains(ends, id):
					in := &id
					if kind > 6 {
						in = nil
					}
					lowest := rapid.Uint64Range(0, 30).Draw(t, "lowest")
					highest := lowest + rapid.Uint64Range(0, 2).Draw(t, "batch")
					// Whoever judges waits while a transaction ends in the same draft.
					got, other := d.Judge(producer, lowest, in)
					want, others := model.judge(producer, lowest, in)
					if len(ends) == 0 && (got != want || got == Unknown && !slices.Contains(others, other)) {
						t.Fatalf("%d of %s in %v: %v because of %v, want %v because of %v", lowest, producer, in, got, other, want, others)
					}
					if got != Fresh || want != Fresh {
						continue
					}
					model = append(slices.Clone(model), modelSend{producer, highest, in})
					if in != nil {
						touched[id] = true
						d.RaiseIn(id, producer, highest)
					} else {
						d.Raise(producer, highest)
					}
				}
			}
			if rapid.Bool().Draw(t, "applied") {
				s.apply(&d)
				for _, id := range ends {
					s.ended(id)
				}
			} else {
				model = before
			}
			if rapid.IntRange(0, 4).Draw(t, "reload") == 0 {
				s.reload(t)
			}
			producer := rapid.SampledFrom(producers).Draw(t, "producer")
			last, found := s.Last(producer)
			if want, wantFound := model.last(producer); last != want || found != wantFound {
				t.Fatalf("last of %s is %d, %v, want %d, %v", producer, last, found, want, wantFound)
			}
		}
	})
}

func TestBadPages(t *testing.T) {
	s := New()
	p := page{}
	p.add(record{"p", 1, 2})
	if err := s.RestorePage(1, p.encode()); err != nil {
		t.Fatal(err)
	}
	if err := s.RestorePage(2, p.encode()); err == nil {
		t.Error("a name in two pages")
	}
	for _, value := range []string{"", "\x02", "\x01\x05ab", "\x01\x01a", "\x01\x01a\x01", "\x01\x01a\x01\x01\x01a\x01\x01"} {
		if err := New().RestorePage(1, []byte(value)); err == nil {
			t.Errorf("page %q", value)
		}
	}
}

func FuzzDecodePage(f *testing.F) {
	p := page{}
	p.add(record{"producer", 1 << 63, 1})
	p.add(record{"", 0, 0})
	f.Add(p.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := decodePage(value)
		if err != nil {
			return
		}
		again, err := decodePage(got.encode())
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%v: %+v, want %+v", err, again, got)
		}
	})
}
