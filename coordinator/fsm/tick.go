package fsm

import "github.com/pulsar-tc/pulsar-tc/txn"

// tick goes on with the drives of a recovery, aborts open transactions whose deadline has passed (TC-18: a decision that is already made
// wins), and forgets outcomes whose time has come.
func (m *Machine) tick(now int64, c *Tick) {
	m.driveRecovered(now)
	if m.space != SpaceRefuseEnd {
		for n := 0; n < deadlinesPerTick && len(m.due) > 0 && m.due[0].deadline() <= now; {
			n += max(1, len(m.due[0].participants))
			m.decide(now, m.due[0], txn.Abort, nil, true)
		}
	}
	m.expiring = m.expiring || c.Expire
	if m.expiring {
		_, done := m.outcomes.Expire(now, expiriesPerTick)
		m.expiring = !done
	}
}
