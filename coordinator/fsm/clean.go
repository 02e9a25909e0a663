package fsm

import (
	"github.com/pulsar-tc/pulsar-tc/coordinator/cleaning"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// carryBytes is about how much of live transactions one batch carries, however many began in the prefix. Outcomes take no more than
// the prefix did.
const carryBytes = 4 << 20

// clean drops the oldest entries of the log and writes again what of them is live.
func (m *Machine) clean(now int64, c *Cleaned) {
	m.cleaning = false
	if len(c.Prefix) == 0 || m.space == SpaceRefuseEnd {
		return
	}
	end, carried := c.Prefix[len(c.Prefix)-1].Index+1, int64(0)
	end = cleaning.Carry(c.Prefix, end, &cleaner{m, now}, func(r txn.Record) (full bool) {
		m.append(txn.Change{Record: r})
		if r.Op == txn.OpSnapshot {
			carried += m.live[r.Least].cost()
		}
		return carried >= carryBytes
	})
	m.ready.Batch.DropBefore = end
	for i := range c.Prefix {
		if c.Prefix[i].Index < end {
			m.logCost -= int64(c.Prefix[i].Bytes) + cleaning.EntryOverhead
		}
	}
}

// cleaner is what package cleaning may ask of a machine.
type cleaner struct {
	m   *Machine
	now int64
}

func (c *cleaner) Snapshot(least, end uint64) (txn.Record, bool) {
	t := c.m.live[least]
	if t == nil || t.since >= end {
		return txn.Record{}, false
	}
	return t.snapshot(c.now), true
}

func (c *cleaner) Outcome(least uint64) (txn.Record, bool) {
	o, key, held := c.m.outcomes.Held(least)
	if !held {
		return txn.Record{}, false
	}
	return txn.Record{
		Op: txn.OpOutcome, Least: least, Status: o.Status, TimedOut: o.TimedOut, Owner: key.Owner, ClientName: key.Name,
		StartTime: o.Opened, TimeoutMillis: o.TTL, Time: o.Ended, Place: o.Place,
	}, true
}
