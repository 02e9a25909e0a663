package topic

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ackSets reads the ack sets of one command.
type ackSets struct {
	ids   []*pulsarproto.MessageIdData
	holds []pendingack.Hold
	left  int // bytes that the sets may still take
}

// resolve reads the ack sets of ids into holds, by the sizes of the stored batches: what a client says of a size is not
// believed. then runs in the topic, maybe later. Errors: txn.ErrNotAllowed if the sets together take more bytes than a message
// may.
func (s *subscription) resolve(ids []*pulsarproto.MessageIdData, holds []pendingack.Hold, then func(error)) {
	t := s.topic
	sets := &ackSets{ids: ids, holds: holds, left: t.options.MaxMessageSize}
	sizes := make(map[ledger.Position]int)
	var unknown []int
	for i, id := range ids {
		if len(id.GetAckSet()) == 0 {
			continue
		}
		if size := s.batchSize(holds[i].Position); size > 0 {
			if err := sets.read(i, size); err != nil {
				then(err)
				return
			}
		} else if t.exists(holds[i].Position) {
			unknown, sizes[holds[i].Position] = append(unknown, i), 0
		}
	}
	if len(unknown) == 0 {
		then(nil)
		return
	}
	end := t.end()
	t.asyncRead(func() {
		err := t.storedSizes(unknown, holds, sizes, end)
		t.ask(func(alive bool) {
			if !alive || err != nil {
				then(ErrPersistence)
				return
			}
			then(sets.readAll(unknown, sizes))
		})
	})
}

// read reads the ack set of the id at i. A set is as large as its batch, whatever the client sent.
func (a *ackSets) read(i, size int) error {
	if a.left -= ledger.BitsBytes(size); a.left < 0 {
		return fmt.Errorf("%w: the ack sets of %d messages are too large together", txn.ErrNotAllowed, len(a.ids))
	}
	a.holds[i].Size, a.holds[i].Acked = size, ledger.AckedBits(a.ids[i].GetAckSet(), size)
	return nil
}

func (a *ackSets) readAll(indexes []int, sizes map[ledger.Position]int) error {
	for _, i := range indexes {
		if err := a.read(i, sizes[a.holds[i].Position]); err != nil {
			return err
		}
	}
	return nil
}

// storedSizes fills in the sizes of the batches at the positions of unknown; 1 where nothing is stored any more. Batches of one
// block are read once.
func (t *Topic) storedSizes(unknown []int, holds []pendingack.Hold, sizes map[ledger.Position]int, end ledger.Position) error {
	for _, i := range unknown {
		p := holds[i].Position
		if sizes[p] != 0 {
			continue
		}
		entries, _, err := t.store.blocks(t.ctx, t.keys, p, end, 1)
		if err != nil {
			return fmt.Errorf("size of batch %v: %w", p, err)
		}
		for n := range entries {
			if _, wanted := sizes[entries[n].Position]; wanted {
				sizes[entries[n].Position] = entries[n].BatchSize()
			}
		}
		sizes[p] = max(1, sizes[p])
	}
	return nil
}
