package dedup

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Draft is what one write changes. State.Draft makes it; the state must not change before the draft is applied or dropped.
type Draft struct {
	state *State
	keep  bool
	now   uint64 // minutes of unix time

	open   map[txn.ID]Sequences // of transactions that the write adds to: all that they have stored then
	pages  map[uint64]*page     // as the write leaves them
	placed map[string]uint64    // the pages of new names
	gone   []string             // names that are forgotten
	newest uint64
}

// Draft begins a write.
func (s *State) Draft(now time.Time) Draft {
	return Draft{state: s, keep: s.keep, now: minutes(now), newest: s.newest}
}

func minutes(t time.Time) uint64 { return uint64(max(0, t.Unix()/60)) }

// Verdict is what is known of a send.
type Verdict uint8

// The values of Verdict.
const (
	Fresh     Verdict = iota
	Duplicate         // it is stored, or is in the draft before it
	Unknown           // it is stored if another transaction, which is open, commits
)

// Judge tells what is known of a send whose lowest sequence id is lowest, in open transaction in, or outside transactions if in is
// nil. If it is Unknown, other is the transaction that decides.
func (d *Draft) Judge(producer string, lowest uint64, in *txn.ID) (verdict Verdict, other txn.ID) {
	if in != nil {
		if highest, found := d.In(*in)[producer]; found && lowest <= highest {
			return Duplicate, other
		}
	}
	if r := d.find(producer); r != nil && lowest <= r.highest {
		return Duplicate, other
	}
	if ceiling, found := d.state.ceilings[producer]; !found || lowest > ceiling {
		return Fresh, other
	}
	return d.judgeOpen(producer, lowest, in)
}

// judgeOpen looks through all open transactions, and lowers the ceiling of the producer to what they have.
func (d *Draft) judgeOpen(producer string, lowest uint64, in *txn.ID) (verdict Verdict, other txn.ID) {
	ceilings := Sequences(d.state.ceilings)
	delete(ceilings, producer)
	look := func(id txn.ID, sequences Sequences) {
		highest, found := sequences[producer]
		if !found {
			return
		}
		ceilings.Raise(producer, highest)
		own := in != nil && *in == id
		if lowest <= highest && !own && (verdict == Fresh || compare(id, other) < 0) {
			verdict, other = Unknown, id
		}
	}
	for id, sequences := range d.state.open {
		if _, changed := d.open[id]; !changed {
			look(id, sequences)
		}
	}
	for id, sequences := range d.open {
		look(id, sequences)
	}
	return verdict, other
}

func compare(a, b txn.ID) int {
	return cmp.Or(cmp.Compare(a.Most, b.Most), cmp.Compare(a.Least, b.Least))
}

// In returns what open transaction id will have stored.
func (d *Draft) In(id txn.ID) Sequences {
	if sequences, found := d.open[id]; found {
		return sequences
	}
	return d.state.open[id]
}

// RaiseIn makes the write store a sequence id in open transaction id.
func (d *Draft) RaiseIn(id txn.ID, producer string, highest uint64) {
	if d.open == nil {
		d.open = make(map[txn.ID]Sequences)
	}
	sequences, found := d.open[id]
	if !found {
		if sequences = maps.Clone(d.state.open[id]); sequences == nil {
			sequences = make(Sequences)
		}
		d.open[id] = sequences
	}
	sequences.Raise(producer, highest)
	Sequences(d.state.ceilings).Raise(producer, highest)
}

// Cost returns how many pages, and bytes of them, Raise or Forget add to the write at most.
func (d *Draft) Cost(producer string) (pages, bytes int) {
	if !d.keep {
		return 0, 0
	}
	number, found := d.place(producer)
	if !found {
		number, bytes = d.roomy(producer), len(producer)+recordBytes
	}
	if _, changed := d.pages[number]; changed {
		return 0, bytes
	}
	if p := d.state.pages[number]; p != nil {
		bytes += p.bytes
	}
	return 1, bytes + 1
}

// CommitCost is Cost for Commit.
func (d *Draft) CommitCost(id txn.ID) (pages, bytes int) {
	for producer := range d.In(id) {
		p, b := d.Cost(producer)
		pages, bytes = pages+p, bytes+b
	}
	return pages, bytes
}

// Raise makes the write store a sequence id for good, if the topic deduplicates.
func (d *Draft) Raise(producer string, highest uint64) {
	if !d.keep {
		return
	}
	number, found := d.place(producer)
	if found {
		r := d.edit(number).find(producer)
		r.highest, r.used = max(r.highest, highest), d.now
		return
	}
	number = d.roomy(producer)
	d.newest = number
	d.edit(number).add(record{producer, highest, d.now})
	if d.placed == nil {
		d.placed = make(map[string]uint64)
	}
	d.placed[producer] = number
}

// Commit makes what open transaction id stored good.
func (d *Draft) Commit(id txn.ID) {
	sequences := d.In(id)
	for _, producer := range sequences.Producers() {
		d.Raise(producer, sequences[producer])
	}
}

// Touch makes the write store that a name is in use.
func (d *Draft) Touch(producer string) {
	if r := d.find(producer); r != nil {
		d.Raise(producer, r.highest)
	}
}

// Forget makes the write forget a name.
func (d *Draft) Forget(producer string) {
	number, found := d.place(producer)
	if !d.keep || !found {
		return
	}
	d.edit(number).remove(producer)
	delete(d.placed, producer)
	d.gone = append(d.gone, producer)
}

// Grows reports whether the write adds names.
func (d *Draft) Grows() bool { return len(d.placed) > 0 }

// Pages visits the pages that the write changes, in order. An empty value means that the page is deleted.
func (d *Draft) Pages(visit func(number uint64, value []byte)) {
	for _, number := range slices.Sorted(maps.Keys(d.pages)) {
		var value []byte
		if p := d.pages[number]; len(p.records) > 0 {
			value = p.encode()
		}
		visit(number, value)
	}
}

// Apply takes over a draft whose write is durable.
func (s *State) Apply(d *Draft) {
	maps.Copy(s.open, d.open)
	for _, producer := range d.gone {
		delete(s.places, producer)
	}
	maps.Copy(s.places, d.placed)
	for number, p := range d.pages {
		if len(p.records) == 0 {
			delete(s.pages, number)
		} else {
			s.pages[number] = p
		}
	}
	s.newest = d.newest
}

// place returns the page that has a name.
func (d *Draft) place(producer string) (number uint64, found bool) {
	if number, found = d.placed[producer]; found {
		return number, true
	}
	number, found = d.state.places[producer]
	if p, changed := d.pages[number]; found && changed {
		found = p.find(producer) != nil
	}
	return number, found
}

func (d *Draft) find(producer string) *record {
	number, found := d.place(producer)
	if !found {
		return nil
	}
	return d.page(number).find(producer)
}

func (d *Draft) page(number uint64) *page {
	if p, changed := d.pages[number]; changed {
		return p
	}
	return d.state.pages[number]
}

// roomy returns the page that a new name goes to.
func (d *Draft) roomy(producer string) uint64 {
	if d.page(d.newest).room(producer) {
		return d.newest
	}
	return d.newest + 1
}

func (d *Draft) edit(number uint64) *page {
	if p, changed := d.pages[number]; changed {
		return p
	}
	if d.pages == nil {
		d.pages = make(map[uint64]*page)
	}
	p := d.state.pages[number].clone()
	d.pages[number] = p
	return p
}
