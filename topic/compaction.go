package topic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/compaction"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// ErrCompactionRunning: a compaction of the topic runs already.
var ErrCompactionRunning = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Compaction already in progress")

// compactionState is where the compaction of a topic stands. A compaction writes a generation of entries beside the one that is
// read, and one write makes it the one that counts, with its horizon. So one that stops halfway leaves nothing but keys that
// the next one, or a load, deletes.
type compactionState struct {
	compactionHead
	triggered bool   // once; from then on what is not compacted is not trimmed
	tried     uint64 // the last generation that was written to in this load: each number is used once
	running   bool
	queued    bool // asked for while leftovers were deleted
	err       error
}

// compactionHead is what is stored of it.
type compactionHead struct {
	generation uint64          // 0: none yet
	horizon    ledger.Position // everything before it is compacted
	entries    uint64
	bytes      uint64
	last       ledger.Position // of the entries, and the index of its last message; -1: not a batch
	lastIndex  int32
}

// The value of the head, numbers big endian: version byte 1; generation, ledger and entry of the horizon, entries, bytes, ledger
// and entry of the last, 8 bytes each; its index, 4 bytes.
const compactionHeadBytes = 1 + 7*8 + 4

func (h *compactionHead) encode() []byte {
	out := make([]byte, 1, compactionHeadBytes)
	out[0] = 1
	for _, n := range []uint64{h.generation, h.horizon.Ledger, h.horizon.Entry, h.entries, h.bytes, h.last.Ledger, h.last.Entry} {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return binary.BigEndian.AppendUint32(out, uint32(h.lastIndex))
}

// restore takes the stored head.
func (c *compactionState) restore(value []byte) error {
	if len(value) != compactionHeadBytes || value[0] != 1 {
		return fmt.Errorf("state of the compaction of %d bytes", len(value))
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(value[1+8*i:]) }
	c.triggered = true
	c.compactionHead = compactionHead{
		generation: n(0), horizon: ledger.Position{Ledger: n(1), Entry: n(2)}, entries: n(3), bytes: n(4),
		last: ledger.Position{Ledger: n(5), Entry: n(6)}, lastIndex: int32(binary.BigEndian.Uint32(value[1+7*8:])),
	}
	c.tried = c.generation
	return nil
}

// hold returns how much of what lies before p the compaction does not need.
//
// Source: the subscription __compaction of Pulsar's topics, COMPACTION_SUBSCRIPTION, which holds back what is not compacted.
func (c *compactionState) hold(p ledger.Position) ledger.Position {
	if (c.triggered || c.running) && c.horizon.Before(p) {
		return c.horizon
	}
	return p
}

// CompactionStatus is how the last compaction of a topic went, and what there is of it.
//
// Source: LongRunningProcessStatus, PersistentTopic.compactionStatus.
type CompactionStatus struct {
	State   string // NOT_RUN, RUNNING, SUCCESS or ERROR
	Error   string
	Entries uint64 // compacted, with Bytes together
	Bytes   uint64
}

// Compact starts to compact a topic or partition and does not wait for the end. A missing topic is not made.
// Errors: ErrTopicNotFound, ErrCompactionRunning.
func (ts *Topics) Compact(ctx context.Context, name topicname.Name) error {
	_, err := askTopic(ctx, ts, name, func(t *Topic, answer func(struct{}, error)) { answer(struct{}{}, t.compact()) })
	return err
}

// CompactionStatus tells how the compaction of a topic or partition stands.
// Errors: ErrTopicNotFound.
func (ts *Topics) CompactionStatus(ctx context.Context, name topicname.Name) (CompactionStatus, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(CompactionStatus, error)) { answer(t.compaction.status(), nil) })
}

func (c *compactionState) status() CompactionStatus {
	s := CompactionStatus{State: "NOT_RUN", Entries: c.entries, Bytes: c.bytes}
	switch {
	case c.running:
		s.State = "RUNNING"
	case c.err != nil:
		s.State, s.Error = "ERROR", c.err.Error()
	case c.generation > 0:
		s.State = "SUCCESS"
	}
	return s
}

// compactWhenDue starts a compaction when what is not compacted exceeds the threshold.
//
// Source: PersistentTopic.checkCompaction.
func (t *Topic) compactWhenDue(policies *Policies) {
	backlog := t.sizes.through - min(t.sizes.through, t.bytesBefore(later(t.compaction.horizon, t.first)))
	if policies.CompactionThreshold > 0 && backlog > uint64(policies.CompactionThreshold) && !t.compaction.running {
		t.begin()
	}
}

// compact starts a compaction unless one runs.
func (t *Topic) compact() error {
	c := &t.compaction
	switch {
	case !c.running:
		t.begin()
		return nil
	case c.tried == c.generation && !c.queued: // leftovers are being deleted
		c.queued = true
		return nil
	}
	return ErrCompactionRunning
}

// maxCompactions is how many compactions of all topics read at once: each may have some hundred MiB of a compressed batch and of
// keys in memory. The others wait.
const maxCompactions = 2

// begin compacts everything that can be read now.
func (t *Topic) begin() {
	c := &t.compaction
	c.tried++
	c.running, c.err = true, nil
	r := &compactionRun{topic: t, old: c.compactionHead, fresh: compactionHead{generation: c.tried, horizon: t.maxRead(), lastIndex: -1}}
	t.async(func() {
		err := r.run(t.ctx)
		t.post(func(alive bool) {
			if alive {
				t.compacted(r, err)
			}
		})
	})
}

// errUnknownCompaction: it is not known which generation counts.
var errUnknownCompaction = errors.New("unknown whether the compaction was published")

// compacted takes the end of a run.
func (t *Topic) compacted(r *compactionRun, err error) {
	c := &t.compaction
	c.triggered = c.triggered || r.triggered
	if err != nil {
		t.log.Warn().Err(err).Msg("topic could not be compacted")
		c.running, c.err = false, err
		if errors.Is(err, errUnknownCompaction) {
			t.shut(ErrPersistence)
		}
		return
	}
	c.compactionHead = r.fresh
	for _, s := range t.subscriptions {
		if s.ahead.generation > 0 {
			s.setAhead(page{})
		}
	}
	t.tidyCompaction()
}

// tidyCompaction deletes what other generations than the one that counts have left.
func (t *Topic) tidyCompaction() {
	c := &t.compaction
	if !c.triggered {
		return
	}
	c.running, c.tried = true, max(c.tried, c.generation)
	keep := c.generation
	t.async(func() {
		err := t.dropGenerations(t.ctx, keep)
		t.post(func(alive bool) {
			if !alive {
				return
			}
			if err != nil {
				t.log.Warn().Err(err).Msg("what an earlier compaction left could not be deleted, tried again by the next one")
			}
			c.running = false
			if c.queued {
				c.queued = false
				t.begin()
			}
		})
	})
}

// keysPerDrop bounds the keys that one delete covers.
const keysPerDrop = 256

// dropGenerations deletes the compacted entries of all generations but keep.
func (t *Topic) dropGenerations(ctx context.Context, keep uint64) error {
	all := t.keys.CompactedPrefix()
	kept := t.keys.Generation(keep)
	for _, r := range [2][2]string{{all, kept}, {clientv3.GetPrefixRangeEnd(kept), clientv3.GetPrefixRangeEnd(all)}} {
		for from, end := r[0], r[1]; ; {
			got, err := t.store.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(keysPerDrop), clientv3.WithKeysOnly())
			if err != nil {
				return err
			}
			if len(got.Kvs) == 0 {
				break
			}
			behind := string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
			if err := t.writeFenced(ctx, clientv3.OpDelete(from, clientv3.WithRange(behind))); err != nil {
				return fmt.Errorf("delete compacted entries: %w", err)
			}
			from = behind
		}
	}
	return nil
}

// writeFenced applies op unless the topic was loaded again.
func (t *Topic) writeFenced(ctx context.Context, op clientv3.Op) error {
	fence := clientv3.Compare(clientv3.ModRevision(t.keys.Owner()), "=", t.fence)
	if t.options.Wrote != nil {
		t.options.Wrote(len(op.ValueBytes()) + opBytes)
	}
	result, err := t.store.txn(ctx, []clientv3.Cmp{fence}, []clientv3.Op{op}, nil)
	if err == nil && !result.Succeeded {
		return errFenced
	}
	return err
}

// compactionRun is one compaction. It runs outside the topic's goroutine and looks at nothing of the topic that changes.
type compactionRun struct {
	topic      *Topic
	old, fresh compactionHead
	triggered  bool // the head is stored
}

// run reads everything before the new horizon twice, the old generation first and then the log behind the old horizon.
func (r *compactionRun) run(ctx context.Context) error {
	t := r.topic
	select {
	case t.registry.compacting <- struct{}{}:
		defer func() { <-t.registry.compacting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.old.generation == 0 {
		if err := t.writeFenced(ctx, clientv3.OpPut(t.keys.Compaction(), string(r.old.encode()))); err != nil {
			return fmt.Errorf("note that the topic is compacted: %w", err)
		}
	}
	r.triggered = true
	if err := t.dropGenerations(ctx, r.old.generation); err != nil {
		return err
	}
	c := compaction.New(compaction.Options{RetainNullKey: t.options.CompactionRetainNullKey})
	defer c.Close()
	if err := r.each(ctx, func(e *ledger.Entry, gone ledger.Bits) error { c.Note(e, gone); return nil }); err != nil {
		return fmt.Errorf("look for the newest of each key: %w", err)
	}
	w := compactedWriter{run: r}
	err := r.each(ctx, func(e *ledger.Entry, gone ledger.Bits) error {
		kept, stays, err := c.Keep(e, gone)
		if err != nil || !stays {
			return err
		}
		return w.add(ctx, kept)
	})
	if err == nil {
		err = w.flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("write compacted entries: %w", err)
	}
	switch err := t.writeFenced(ctx, clientv3.OpPut(t.keys.Compaction(), string(r.fresh.encode()))); {
	case errors.Is(err, errFenced):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUnknownCompaction, err)
	}
	return nil
}

// each visits what is to be compacted, in order, with the messages of batches that are gone.
func (r *compactionRun) each(ctx context.Context, visit func(*ledger.Entry, ledger.Bits) error) error {
	t := r.topic
	if r.old.generation > 0 {
		err := t.store.scanPrefix(ctx, t.keys.Generation(r.old.generation), func(key, value []byte) error {
			kept, err := decodeCompacted(key, value)
			for i := 0; err == nil && i < len(kept); i++ {
				err = visit(&kept[i].Entry, kept[i].Gone)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for from := r.old.horizon; from.Before(r.fresh.horizon); {
		got, err := t.store.page(ctx, t.keys, from, r.fresh.horizon, readBytes)
		if err != nil {
			return err
		}
		for i := range got.entries {
			if err := visit(&got.entries[i], nil); err != nil {
				return err
			}
		}
		from = got.To
	}
	return nil
}

// compactedWriter stores kept entries in blocks.
type compactedWriter struct {
	run   *compactionRun
	block []compaction.Kept
	bytes int
}

func (w *compactedWriter) add(ctx context.Context, kept compaction.Kept) error {
	size := kept.EncodedBytes()
	if w.bytes+size > maxBlockBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.block, w.bytes = append(w.block, kept), w.bytes+size
	head := &w.run.fresh
	head.entries, head.bytes, head.last, head.lastIndex = head.entries+1, head.bytes+uint64(size), kept.Position, kept.Last
	return nil
}

func (w *compactedWriter) flush(ctx context.Context) error {
	if len(w.block) == 0 {
		return nil
	}
	t := w.run.topic
	if t.options.Admit != nil {
		if err := t.options.Admit(); err != nil {
			return err
		}
	}
	last := w.block[len(w.block)-1].Position
	key := t.keys.Compacted(w.run.fresh.generation, last.Ledger, last.Entry)
	err := t.writeFenced(ctx, clientv3.OpPut(key, string(compaction.EncodeBlock(w.block))))
	w.block, w.bytes = w.block[:0], 0
	return err
}
