package sim

import (
	"context"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// theLog is the log of a coordinator in one term.
type theLog = coordinator.Log

// behind appends while its caller goes on.
type behind struct {
	theLog
	tasks *sync.WaitGroup

	mu   sync.Mutex // guards the following
	next uint64     // index that the next batch is told
	last chan struct{}
	err  error // of an append that failed
}

func appendBehind(p *process, _ uint64, log theLog) theLog {
	done := make(chan struct{})
	close(done)
	return &behind{theLog: log, tasks: &p.tasks, next: 1, last: done}
}

func (b *behind) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	return b.theLog.Load(ctx, func(entry txn.LogEntry) error {
		b.next = entry.Index + 1
		return visit(entry)
	})
}

func (b *behind) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return txn.Appended{}, b.err
	}
	batch.Changes = copied(batch.Changes)
	previous, done := b.last, make(chan struct{})
	b.last = done
	b.tasks.Go(func() {
		defer close(done)
		<-previous
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, err := b.theLog.Append(ctx, batch); err != nil {
			b.mu.Lock()
			b.err = err
			b.mu.Unlock()
		}
	})
	at := txn.Appended{First: b.next, Last: b.next, Bytes: 1}
	b.next++
	return at, nil
}

// copied are changes that stay when the machine uses its memory again.
func copied(changes []txn.Change) []txn.Change {
	all := append([]txn.Change(nil), changes...)
	for i := range all {
		all[i].Record = copiedRecord(&all[i].Record)
		all[i].Opens = append([]txn.Participant(nil), all[i].Opens...)
	}
	return all
}

func copiedRecord(r *txn.Record) txn.Record {
	c := *r
	c.Participants = append([]txn.Participant(nil), r.Participants...)
	c.Done = append([]txn.Participant(nil), r.Done...)
	return c
}

// unproved believes that its term holds.
type unproved struct{ theLog }

func proveNothing(_ *process, _ uint64, log theLog) theLog { return unproved{log} }

func (unproved) Prove(context.Context) error { return nil }

// telling calls participants before it appends the decision.
type teller struct {
	theLog
	process *process
	tc      uint64
	added   map[uint64][]txn.Participant
}

func tellBefore(p *process, tc uint64, log theLog) theLog {
	return &teller{log, p, tc, map[uint64][]txn.Participant{}}
}

func (t *teller) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	return t.theLog.Load(ctx, func(entry txn.LogEntry) error {
		for i := range entry.Records {
			t.learn(&entry.Records[i])
		}
		return visit(entry)
	})
}

func (t *teller) learn(r *txn.Record) {
	t.added[r.Least] = append(t.added[r.Least], r.Participants...)
}

func (t *teller) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	for i := range batch.Changes {
		r := &batch.Changes[i].Record
		t.learn(r)
		action, decided := r.Status.Decided()
		if r.Op != txn.OpUpdate || !decided || r.Status.Final() {
			continue
		}
		for _, p := range t.added[r.Least] {
			t.process.newParticipants().End(t.process.ctx, txn.ID{Most: t.tc, Least: r.Least}, p, action, 0, func(error) {})
		}
	}
	return t.theLog.Append(ctx, batch)
}

// unreserved stores no bound of ids.
type unreserved struct{ theLog }

func countInMemory(_ *process, _ uint64, log theLog) theLog { return unreserved{log} }

func (u unreserved) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	_, err := u.theLog.Load(ctx, visit)
	return 0, err
}

func (u unreserved) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	batch.Next = 0
	return u.theLog.Append(ctx, batch)
}

// reread changes what a load finds.
type reread struct {
	theLog
	change func([]txn.LogEntry)
}

// Load implements coordinator.Log.
func (r reread) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	var all []txn.LogEntry
	next, err := r.theLog.Load(ctx, func(entry txn.LogEntry) error {
		records := make([]txn.Record, len(entry.Records))
		for i := range records {
			records[i] = copiedRecord(&entry.Records[i])
		}
		entry.Records = records
		all = append(all, entry)
		return nil
	})
	if err != nil {
		return 0, err
	}
	r.change(all)
	for _, entry := range all {
		if err := visit(entry); err != nil {
			return 0, err
		}
	}
	return next, nil
}

func restartDeadlines(p *process, _ uint64, log theLog) theLog {
	return reread{log, func(all []txn.LogEntry) {
		eachRecord(all, func(r *txn.Record) {
			if r.Op == txn.OpNew || r.Op == txn.OpSnapshot {
				r.StartTime = p.now().UnixMilli()
			}
		})
	}}
}

func eachRecord(all []txn.LogEntry, visit func(*txn.Record)) {
	for _, entry := range all {
		for i := range entry.Records {
			visit(&entry.Records[i])
		}
	}
}

// abortOverCommit aborts what a load finds committing behind its deadline.
func abortOverCommit(p *process, _ uint64, log theLog) theLog {
	return reread{log, func(all []txn.LogEntry) {
		deadlines, ended := map[uint64]int64{}, map[uint64]bool{}
		eachRecord(all, func(r *txn.Record) {
			if r.Op == txn.OpNew || r.Op == txn.OpSnapshot {
				deadlines[r.Least] = r.StartTime + int64(r.TimeoutMillis)
			}
			ended[r.Least] = ended[r.Least] || r.Status.Final()
		})
		now := p.now().UnixMilli()
		eachRecord(all, func(r *txn.Record) {
			if r.Status == txn.Committing && !ended[r.Least] && deadlines[r.Least] <= now {
				r.Status, r.TimedOut = txn.Aborting, true
			}
		})
	}}
}

// stepwise ends transactions in two steps: a record that deletes, then one that is the outcome.
type stepwise struct{ theLog }

func endInTwoSteps(_ *process, _ uint64, log theLog) theLog {
	return stepwise{reread{log, dropWithoutOutcome}}
}

func (s stepwise) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	var outcomes []txn.Change
	for _, c := range copied(batch.Changes) {
		if c.Record.Op == txn.OpUpdate && c.Record.Status.Final() {
			c.Record.Op = txn.OpOutcome
			outcomes = append(outcomes, txn.Change{Record: c.Record})
		}
	}
	at, err := s.theLog.Append(ctx, batch)
	if err != nil || len(outcomes) == 0 {
		return at, err
	}
	behind, err := s.theLog.Append(ctx, txn.Batch{Changes: outcomes})
	return txn.Appended{First: at.First, Last: behind.Last, Bytes: at.Bytes + behind.Bytes}, err
}

// dropWithoutOutcome forgets transactions whose end has no outcome.
func dropWithoutOutcome(all []txn.LogEntry) {
	kept, gone := map[uint64]bool{}, map[uint64]bool{}
	eachRecord(all, func(r *txn.Record) {
		kept[r.Least] = kept[r.Least] || r.Op == txn.OpOutcome
		gone[r.Least] = gone[r.Least] || r.Op == txn.OpUpdate && r.Status.Final()
	})
	for i := range all {
		var left []txn.Record
		for _, r := range all[i].Records {
			if r.Op == txn.OpForget || !gone[r.Least] || kept[r.Least] {
				left = append(left, r)
			}
		}
		all[i].Records = left
	}
}
