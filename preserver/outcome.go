package preserver

import (
	"math"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Outcome is how one transaction ended. It is a copy: nothing in it changes when the live transaction goes (P-8).
type Outcome struct {
	Least    uint64
	Place    uint64 // rank among all outcomes of the coordinator; later ones are larger; below 1 << 60
	Opened   int64  // ms since the epoch; no earlier than math.MaxUint32 ms (49 days) before Ended
	Ended    int64  // ms since the epoch
	TTL      uint64 // ms; at most math.MaxUint32
	Status   txn.Status
	TimedOut bool
}

// slot is an Outcome as the index holds it, in 32 bytes.
type slot struct {
	least uint64
	place uint64 // place << placeShift | status << 1 | timed out
	ended int64
	took  uint32 // ms from opened to ended
	ttl   uint32
}

const placeShift = 4

func pack(o Outcome) slot {
	s := slot{
		least: o.Least, place: o.Place<<placeShift | uint64(o.Status)<<1, ended: o.Ended,
		took: uint32(min(max(o.Ended-o.Opened, 0), math.MaxUint32)),
		ttl:  uint32(min(o.TTL, math.MaxUint32)),
	}
	if o.TimedOut {
		s.place |= 1
	}
	return s
}

// number is the place of the outcome.
func (s *slot) number() uint64 { return s.place >> placeShift }

func (s *slot) outcome() Outcome {
	return Outcome{
		Least: s.least, Place: s.number(), Opened: s.ended - int64(s.took), Ended: s.ended, TTL: uint64(s.ttl),
		Status: txn.Status(s.place >> 1 & 7), TimedOut: s.place&1 != 0,
	}
}
