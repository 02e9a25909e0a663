package preserver

// Forgotten says that the outcomes of Key with a place up to Place are not known any more. Change is the place of that
// change itself; 0: it has none.
type Forgotten struct {
	Key           Key
	Place, Change uint64
}

type forgotten struct {
	bucket *Bucket
	place  uint64
}

func (x *Index) forget(b *Bucket, place uint64) {
	if b.forgottenAt > 0 {
		x.forgotten[b.forgottenAt-1].place = place
		return
	}
	x.forgotten = append(x.forgotten, forgotten{b, place})
	b.forgottenAt = len(x.forgotten)
}

// Forgetting reports whether TakeForgotten has something to tell.
func (x *Index) Forgetting() bool { return len(x.forgotten) > 0 }

// TakeForgotten tells what has been forgotten since the last call, one entry for each bucket. It must be durable before an
// answer that rests on it, and is given back to a later load by LoadForgotten.
func (x *Index) TakeForgotten(tell func(Forgotten)) {
	for i := range x.forgotten {
		f := &x.forgotten[i]
		f.bucket.forgottenAt = 0
		tell(Forgotten{Key: f.bucket.key, Place: f.place})
		*f = forgotten{}
	}
	x.forgotten = x.forgotten[:0]
}

// LoadForgotten takes what was forgotten before, like Load.
func (x *Index) LoadForgotten(f Forgotten) {
	if x.cuts == nil {
		x.cuts = map[Key]Forgotten{}
	}
	before := x.cuts[f.Key]
	x.cuts[f.Key] = Forgotten{Place: max(before.Place, f.Place), Change: max(before.Change, f.Change)}
}
