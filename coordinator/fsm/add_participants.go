package fsm

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// addParticipants registers participants with an open transaction; names already registered are skipped (TC-12, TC-13).
// Source: MLTransactionMetadataStore.addProducedPartitionToTxn, addAckedPartitionToTxn.
func (m *Machine) addParticipants(now int64, c *AddParticipants) {
	id := m.id(c.Least)
	t := m.live[c.Least]
	if t == nil {
		m.refuseEnded(now, c.To, c.Caller, c.Least)
		return
	}
	if !mayAct(c.Caller, t.bucket.Key().Owner) {
		m.refuseUnknown(c.To, id)
		return
	}
	if t.status != txn.Open {
		m.refuse(c.To, id, &txn.StatusError{ID: id, Want: txn.Open, Got: t.status})
		return
	}
	fresh := unregistered(t, c.Participants)
	if len(fresh) == 0 {
		m.refuse(c.To, id, nil)
		return
	}
	if err := m.fits(t, fresh); err != nil {
		m.refuse(c.To, id, err)
		return
	}
	for len(fresh) > 0 {
		n := oneKind(fresh)
		op := txn.OpAddPartition
		if fresh[0].Kind == txn.AckedSubscription {
			op = txn.OpAddSubscription
		}
		m.append(txn.Change{
			Record: txn.Record{Op: op, Least: c.Least, Participants: fresh[:n], Time: now},
			Opens:  fresh[:n],
		})
		fresh = fresh[n:]
	}
	m.reply(c.To, id, nil)
}

// oneKind is how many participants at the beginning of all are of one kind: a record holds only such.
func oneKind(all []txn.Participant) int {
	n := 1
	for n < len(all) && all[n].Kind == all[0].Kind {
		n++
	}
	return n
}

// unregistered returns the participants that t does not have, each once.
func unregistered(t *transaction, all []txn.Participant) []txn.Participant {
	var fresh []txn.Participant
	seen := map[txn.Participant]struct{}{}
	for _, p := range all {
		if _, twice := seen[p]; !twice && t.find(p) == nil {
			fresh = append(fresh, p)
		}
		if len(all) > 1 {
			seen[p] = struct{}{}
		}
	}
	return fresh
}

func (m *Machine) fits(t *transaction, fresh []txn.Participant) error {
	if m.space != SpaceNormal {
		return fmt.Errorf("%w: the store is nearly full, new participants are refused until there is space", txn.ErrNotReady)
	}
	if n := len(t.participants) + len(fresh); m.opts.MaxParticipants > 0 && n > m.opts.MaxParticipants {
		return fmt.Errorf("%w: the transaction would have %d participants, transactionMaxParticipants allows %d",
			txn.ErrNotAllowed, n, m.opts.MaxParticipants)
	}
	size := t.names
	for _, p := range fresh {
		size += p.Size()
	}
	if m.opts.MaxParticipantBytes > 0 && size > m.opts.MaxParticipantBytes {
		return fmt.Errorf("%w: the names of the transaction's participants would take %d bytes, transactionMaxParticipantBytes allows %d",
			txn.ErrNotAllowed, size, m.opts.MaxParticipantBytes)
	}
	if need := snapshotBytes(len(t.participants)+len(fresh), size); m.opts.MaxSnapshotBytes > 0 && need > m.opts.MaxSnapshotBytes {
		return fmt.Errorf("%w: the transaction's participants would take %d bytes of one store request, there is room for %d",
			txn.ErrNotAllowed, need, m.opts.MaxSnapshotBytes)
	}
	return nil
}

// snapshotBytes is an upper bound of what the participants of a transaction take in its snapshot, where each may stand twice:
// once as registered, once as resolved.
func snapshotBytes(participants, names int) int {
	const each = 24 // tags and lengths
	return 2 * (each*participants + names)
}

// refuseEnded answers an ADD on a transaction that is not live (P-12).
func (m *Machine) refuseEnded(now int64, to any, caller Caller, least uint64) {
	id := m.id(least)
	o, key, kept := m.outcome(least, now)
	if !kept || !mayAct(caller, key.Owner) {
		m.refuseUnknown(to, id)
		return
	}
	m.reply(to, id, &txn.StatusError{ID: id, Want: txn.Open, Got: o.Status})
}
