package sim

import (
	"sort"
	"time"
)

// progress is when the store reached which revision.
type progress []reached

type reached struct {
	at       time.Time
	revision int64
}

// note adds the newest revision.
func (p *progress) note(revision int64) {
	if n := len(*p); n == 0 || (*p)[n-1].revision < revision {
		*p = append(*p, reached{time.Now(), revision})
	}
}

// at is the revision at a moment, 1 before the first.
func (p progress) at(moment time.Time) int64 {
	n := sort.Search(len(p), func(i int) bool { return p[i].at.After(moment) })
	if n == 0 {
		return 1
	}
	return p[n-1].revision
}
