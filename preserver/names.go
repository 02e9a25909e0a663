package preserver

// Newest is a client name that has outcomes, and its newest change.
type Newest struct {
	Key   Key
	Place uint64
	Ended int64 // of the newest outcome, ms since the epoch
}

// Shown is what Get shows of one client name.
type Shown struct {
	Outcomes []Outcome // newest first
	More     bool      // there are older ones
}

// Changed notes that the outcomes of key changed at place in another way than by a new one, and returns how many are held.
func (x *Index) Changed(key Key, place uint64) int {
	b := x.byKey[key]
	if b == nil {
		return 0
	}
	b.changed = place
	return b.Len()
}

// place is that of the newest change.
func (b *Bucket) place() uint64 {
	return max(b.changed, b.slot(b.Len()-1).number())
}

// shows reports whether Get shows the i-th oldest.
func (x *Index) shows(b *Bucket, i int, now int64) bool {
	s := b.slot(i)
	return !x.tooOld(s, now) && (b.Len()-i <= b.limit || !x.unprotected(s, now))
}

// ListNames returns client names of which Get shows an outcome, looking at no more than budget buckets from number from on, and
// the number to go on from; -1 behind the last. Names that come or go meanwhile may be missed.
func (x *Index) ListNames(from, budget int, now int64) (names []Newest, next int) {
	end := min(len(x.numbered), from+budget)
	for ; from < end; from++ {
		b := x.numbered[from]
		if b == nil || b.key.Name == "" || b.Len() == 0 || !x.shows(b, b.Len()-1, now) {
			continue
		}
		names = append(names, Newest{Key: b.key, Place: b.place(), Ended: b.slot(b.Len() - 1).ended})
	}
	if end == len(x.numbered) {
		return names, -1
	}
	return names, end
}

// Shown returns the newest outcomes of key that Get shows, at most limit. Nothing is forgotten by it.
func (x *Index) Shown(key Key, limit int, now int64) Shown {
	var shown Shown
	b := x.byKey[key]
	if b == nil {
		return shown
	}
	for i := b.Len() - 1; i >= 0 && x.shows(b, i, now); i-- {
		if len(shown.Outcomes) == limit {
			shown.More = true
			break
		}
		shown.Outcomes = append(shown.Outcomes, b.slot(i).outcome())
	}
	return shown
}
