package preserver

import (
	"math"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Outcome is how one transaction ended. It is a copy: nothing in it changes when the live transaction goes (P-8).
type Outcome struct {
	Least    uint64
	Place    uint64 // rank among all outcomes of the coordinator; later ones are larger
	Opened   int64  // ms since the epoch
	Ended    int64  // ms since the epoch
	TTL      uint64 // ms; at most math.MaxUint32
	Status   txn.Status
	TimedOut bool
}

// slot is an Outcome as the index holds it: 40 bytes.
type slot struct {
	least  uint64
	place  uint64
	opened int64
	ended  int64
	ttl    uint32
	status txn.Status
	timed  bool
}

func pack(o Outcome) slot {
	return slot{
		least: o.Least, place: o.Place, opened: o.Opened, ended: o.Ended,
		ttl: uint32(min(o.TTL, math.MaxUint32)), status: o.Status, timed: o.TimedOut,
	}
}

func (s *slot) outcome() Outcome {
	return Outcome{
		Least: s.least, Place: s.place, Opened: s.opened, Ended: s.ended,
		TTL: uint64(s.ttl), Status: s.status, TimedOut: s.timed,
	}
}
