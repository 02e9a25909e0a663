package coordinator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/memlog"
)

// holdWrites makes every write wait until release is called.
func (r *rig) holdWrites() (release func()) {
	gate := make(chan struct{})
	r.store.Intercept(func(uint64, memlog.Write) memlog.Fate {
		<-gate
		return memlog.Apply
	})
	return func() {
		r.store.Intercept(nil)
		close(gate)
	}
}

// loseNext gives the next write a fate.
func (r *rig) loseNext(fate memlog.Fate) {
	r.store.Intercept(func(uint64, memlog.Write) memlog.Fate {
		r.store.Intercept(nil)
		return fate
	})
}

// TestNothingBeforeTheAppend: no reply and no call of a participant leaves before the batch that it rests on is durable.
func TestNothingBeforeTheAppend(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		id := r.open(time.Hour, "a")
		release := r.holdWrites()
		ended, refused, opened := r.askEnd(id, txn.Commit), r.askEnd(id, txn.Abort), r.askNew(time.Hour)
		if !ended.waits() || !refused.waits() || !opened.waits() {
			t.Error("a request is answered before its batch is durable")
		}
		if calls := r.participants.of("a"); len(calls) > 0 {
			t.Errorf("a participant is called before the decision is durable: %v", calls)
		}
		release()
		ended.want("END COMMIT", nil)
		refused.wantStatus("END ABORT", txn.Committing)
		opened.want("NEW", nil)
		if calls := r.participants.of("a"); len(calls) != 1 || calls[0].action != txn.Commit || calls[0].lowWaterMark != id.Least-1 {
			t.Errorf("calls of the participant: %v", calls)
		}
	})
}

// TestGroupCommit: what waits while an append is under way goes into one batch, up to MaxBatch.
func TestGroupCommit(t *testing.T) {
	for _, c := range []struct{ maxBatch, appends int }{{1000, 2}, {10, 11}} {
		inBubble(t, func(r *rig) { r.opts.MaxBatch = c.maxBatch }, func(t *testing.T, r *rig) {
			r.open(time.Hour)
			r.counted()
			release := r.holdWrites()
			first := r.askNew(time.Hour)
			first.waits()
			rest := make([]*answer, 100)
			for i := range rest {
				rest[i] = r.askNew(time.Hour)
			}
			release()
			first.want("first", nil)
			ids := map[txn.ID]bool{first.id: true}
			for _, a := range rest {
				a.want("waiting", nil)
				ids[a.id] = true
			}
			if appends, _ := r.counted(); appends != c.appends || len(ids) != 101 {
				t.Errorf("MaxBatch %d: %d appends, %d ids, want %d and 101", c.maxBatch, appends, len(ids), c.appends)
			}
		})
	}
}

// TestProof: an answer that rests on the term alone proves it by a read and writes nothing; a stored outcome needs neither.
func TestProof(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.participants.answer("a", hangs)
		open, done, driving := r.open(time.Hour, "a"), r.open(time.Hour), r.open(time.Hour, "a")
		r.askEnd(done, txn.Commit).want("END", nil)
		r.askEnd(driving, txn.Commit).waits()
		r.counted()
		for _, c := range []struct {
			name   string
			ask    func() *answer
			check  func(*answer)
			proofs int
		}{
			{"24", func() *answer { return r.askEnd(txn.ID{Least: 7}, txn.Commit) }, func(a *answer) { a.wantNotFound("END") }, 1},
			{"24 for ADD", func() *answer { return r.askAdd(txn.ID{Least: 7}, "a") }, func(a *answer) { a.wantNotFound("ADD") }, 1},
			{"21 while driving", func() *answer { return r.askEnd(driving, txn.Abort) },
				func(a *answer) { a.wantStatus("END", txn.Committing) }, 1},
			{"ADD again", func() *answer { return r.askAdd(open, "a") }, func(a *answer) { a.want("ADD", nil) }, 1},
			{"END again", func() *answer { return r.askEnd(done, txn.Commit) }, func(a *answer) { a.want("END", nil) }, 0},
			{"21 for an outcome", func() *answer { return r.askEnd(done, txn.Abort) },
				func(a *answer) { a.wantStatus("END", txn.Committed) }, 0},
			{"ADD to an outcome", func() *answer { return r.askAdd(done, "a") }, func(a *answer) { a.wantStatus("ADD", txn.Committed) }, 0},
		} {
			c.check(c.ask())
			if appends, proofs := r.counted(); appends != 0 || proofs != c.proofs {
				t.Errorf("%s: %d appends, %d proofs, want 0 and %d", c.name, appends, proofs, c.proofs)
			}
		}
	})
}

// TestNoAnswerFromALostTerm: a leader that does not know yet that its term is over gives no definite answer, from memory
// neither (promise 4).
func TestNoAnswerFromALostTerm(t *testing.T) {
	for name, ask := range map[string]func(r *rig, id txn.ID) *answer{
		"NEW":       func(r *rig, _ txn.ID) *answer { return r.askNew(time.Hour) },
		"24":        func(r *rig, _ txn.ID) *answer { return r.askEnd(txn.ID{Least: 7}, txn.Commit) },
		"ADD again": func(r *rig, id txn.ID) *answer { return r.askAdd(id, "a") },
		"END":       func(r *rig, id txn.ID) *answer { return r.askEnd(id, txn.Commit) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) { r.deaf = true }, func(t *testing.T, r *rig) {
				id := r.open(time.Hour, "a")
				r.election.Expire(0)
				ask(r, id).want("request in the lost term", txn.ErrCoordinatorNotFound)
				if calls := r.participants.of("a"); len(calls) > 0 {
					t.Errorf("a participant was called: %v", calls)
				}
			})
		})
	}
}

// TestFencedAppendEndsTheTerm: everyone who waits is answered with 20, connections that registered are closed once, and the
// next term serves what the log says (TC-24).
func TestFencedAppendEndsTheTerm(t *testing.T) {
	inBubble(t, func(r *rig) { r.deaf = true }, func(t *testing.T, r *rig) {
		closed := 0
		r.askConnect(t.Context(), func(bool) { closed++ }).want("connect", nil)
		gone, leave := context.WithCancel(t.Context())
		r.askConnect(gone, func(bool) { t.Error("a connection that is gone is closed") }).want("connect", nil)
		leave()
		r.participants.answer("a", hangs)
		driving, open := r.open(time.Hour, "a"), r.open(time.Hour)
		waiting := r.askEnd(driving, txn.Commit)
		if !waiting.waits() {
			t.Fatal("END is answered while its participant hangs")
		}
		r.election.Expire(0)
		r.participants.answer("a", nil)
		fenced := r.askEnd(open, txn.Commit)
		fenced.want("END that was fenced", txn.ErrCoordinatorNotFound)
		waiting.want("END that waited", txn.ErrCoordinatorNotFound)
		if closed != 1 {
			t.Errorf("the connection is closed %d times, want once", closed)
		}
		time.Sleep(time.Second)
		r.askEnd(open, txn.Abort).want("END ABORT of what was never committed", nil)
		r.askEnd(driving, txn.Commit).want("END COMMIT of what was", nil)
		if len(r.termsEnded) != 1 {
			t.Errorf("terms that ended: %v, want one", r.termsEnded)
		}
	})
}

// TestEveryoneWhoWaitsHearsOfTheEnd: requests in the batch, taken but not stepped yet, and still in the queue, all get 20 at once when
// the append is fenced.
func TestEveryoneWhoWaitsHearsOfTheEnd(t *testing.T) {
	inBubble(t, func(r *rig) { r.deaf, r.opts.MaxBatch = true, 2 }, func(t *testing.T, r *rig) {
		gate, writes := make(chan struct{}), 0
		r.store.Intercept(func(uint64, memlog.Write) memlog.Fate {
			writes++
			<-gate
			return memlog.Apply
		})
		ask := func(n int) []*answer {
			all := make([]*answer, n)
			for i := range all {
				all[i] = r.askNew(time.Hour)
			}
			synctest.Wait()
			return all
		}
		first := ask(1)
		taken := ask(5)
		gate <- struct{}{}
		synctest.Wait()
		queued := ask(3)
		r.election.Expire(0)
		close(gate)
		first[0].want("NEW before the end", nil)
		for i, a := range append(taken, queued...) {
			a.want(fmt.Sprint("NEW ", i), txn.ErrCoordinatorNotFound)
		}
		if writes != 2 {
			t.Errorf("%d writes, want 2", writes)
		}
	})
}

// TestUnknownResult: a write of unknown fate is answered with 20 and nothing definite; the next load tells what happened (TC-20).
func TestUnknownResult(t *testing.T) {
	for _, c := range []struct {
		name string
		fate memlog.Fate
		tell func(r *rig, id txn.ID)
	}{
		{"applied", memlog.LoseAnswer, func(r *rig, id txn.ID) {
			r.askEnd(id, txn.Abort).wantStatus("contrary END", txn.Committed)
			r.askEnd(id, txn.Commit).want("END again", nil)
		}},
		{"not applied", memlog.LoseWrite, func(r *rig, id txn.ID) {
			r.askEnd(id, txn.Abort).want("END ABORT", nil)
			r.askEnd(id, txn.Commit).wantStatus("END COMMIT", txn.Aborted)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig) {
				closed := 0
				r.askConnect(t.Context(), func(bool) { closed++ }).want("connect", nil)
				id := r.open(time.Hour)
				r.loseNext(c.fate)
				r.askEnd(id, txn.Commit).want("END of unknown fate", txn.ErrCoordinatorNotFound)
				if closed != 1 {
					t.Errorf("the connection is closed %d times, want once", closed)
				}
				time.Sleep(time.Second)
				c.tell(r, id)
			})
		})
	}
}

// TestTornAppend: a batch of which only the beginning became durable is answered with 20, whatever part a request had in it.
func TestTornAppend(t *testing.T) {
	inBubble(t, func(r *rig) { r.logOptions.MaxChanges = 1 }, func(t *testing.T, r *rig) {
		first, second := r.open(time.Hour), r.open(time.Hour)
		gate, writes := make(chan struct{}), 0
		r.store.Intercept(func(uint64, memlog.Write) memlog.Fate {
			<-gate
			if writes++; writes == 3 {
				return memlog.LoseWrite
			}
			return memlog.Apply
		})
		r.askNew(time.Hour).waits()
		one, two := r.askEnd(first, txn.Commit), r.askEnd(second, txn.Commit)
		close(gate)
		one.want("END in the durable part", txn.ErrCoordinatorNotFound)
		two.want("END in the lost part", txn.ErrCoordinatorNotFound)
		r.store.Intercept(nil)
		time.Sleep(time.Second)
		r.askEnd(first, txn.Abort).wantStatus("END of the durable part", txn.Committed)
		r.askEnd(second, txn.Abort).want("END of the lost part", nil)
	})
}

// TestTooManyRequests holds TC-25: the answer is held back, others are not.
func TestTooManyRequests(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.Machine.MaxActive = 1 }, func(t *testing.T, r *rig) {
		id := r.open(time.Hour)
		began := time.Now()
		refused := r.askNew(time.Hour)
		if !refused.waits() {
			t.Fatal("the refusal is not held back")
		}
		r.askEnd(id, txn.Commit).want("END meanwhile", nil)
		time.Sleep(time.Second)
		refused.want("NEW", txn.ErrTooManyRequests)
		if held := refused.at.Sub(began); held != r.opts.TooManyPause {
			t.Errorf("held back for %s, want %s", held, r.opts.TooManyPause)
		}
	})
}

// TestLogIsCleaned: the driver reads and drops what is dead, and a restart finds everything that is not.
func TestLogIsCleaned(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.Machine.Preserver.UnnamedCount, r.opts.Machine.Preserver.MinTime = 10, 0 },
		func(t *testing.T, r *rig) {
			open := r.open(time.Hour, "a")
			for range 6000 {
				a := r.askNew(time.Hour)
				a.want("NEW", nil)
				r.askEnd(a.id, txn.Commit).want("END", nil)
			}
			last := r.open(time.Hour)
			r.askEnd(last, txn.Abort).want("END", nil)
			status := r.group.Statuses()[0]
			if status.LogBytes > 2*status.LogLiveBytes+1<<20+1<<16 || r.store.Value(0, 1) != nil {
				t.Errorf("the log takes %d bytes, live are %d", status.LogBytes, status.LogLiveBytes)
			}
			r.restart()
			r.askEnd(last, txn.Commit).wantStatus("END of the last", txn.Aborted)
			r.askEnd(open, txn.Commit).want("END of the first", nil)
		})
}

// TestSpace: the level reaches the machine of this term and of later ones (P-29).
func TestSpace(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		id := r.open(time.Hour)
		r.group.SetSpace(fsm.SpaceRefuseNew)
		r.askNew(time.Hour).want("NEW", txn.ErrNotReady)
		r.restart()
		r.group.SetSpace(fsm.SpaceRefuseEnd)
		r.askEnd(id, txn.Commit).want("END", txn.ErrNotReady)
		r.election.Expire(0)
		time.Sleep(time.Second)
		synctest.Wait()
		r.askNew(time.Hour).want("NEW in the next term", txn.ErrNotReady)
		r.group.SetSpace(fsm.SpaceNormal)
		r.askEnd(id, txn.Commit).want("END", nil)
	})
}

// A level that is told when a term ends, and is out of date when the next one begins, does not reach its machine.
func TestSpaceBetweenTerms(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.opts.Events.TermEnded = func(uint64, int64, error) { r.group.SetSpace(fsm.SpaceRefuseEnd) }
	}, func(t *testing.T, r *rig) {
		id := r.open(time.Hour)
		r.mu.Lock()
		r.winning = func() { r.group.SetSpace(fsm.SpaceNormal) }
		r.mu.Unlock()
		r.election.Expire(0)
		time.Sleep(time.Second)
		r.askEnd(id, txn.Commit).want("END in the next term", nil)
	})
}

// slowLog takes its time for every 126 open keys that a batch puts or deletes.
type slowLog struct {
	coordinator.Log
	took time.Duration
	open map[uint64]int // keys, by transaction
}

func (l slowLog) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	keys := 0
	for i := range batch.Changes {
		c := &batch.Changes[i]
		keys += len(c.Opens)
		l.open[c.Record.Least] += len(c.Opens)
		if c.CloseAll {
			keys += l.open[c.Record.Least]
		}
	}
	time.Sleep(time.Duration(keys/126) * l.took)
	return l.Log.Append(ctx, batch)
}

// A burst of ADDs with many participants each is written in batches that a slow store takes in time: one that takes too long ends the
// term.
func TestBurstOfParticipants(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.wrapLog = func(log coordinator.Log) coordinator.Log {
			return slowLog{log, 25 * time.Millisecond, map[uint64]int{}}
		}
	}, func(t *testing.T, r *rig) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprint("topic-", i)
		}
		first := r.open(time.Hour)
		var all []*answer
		for range 100 {
			all = append(all, r.askNew(time.Hour))
		}
		synctest.Wait()
		adds := []*answer{r.askAdd(first, names...)} // the others wait for its append
		for _, a := range all {
			adds = append(adds, r.askAdd(a.id, names...))
		}
		time.Sleep(time.Minute)
		for _, a := range adds {
			a.want("ADD", nil)
		}
	})
}

// The same holds for a burst of ENDs: each deletes the open keys of all its participants.
func TestBurstOfEnds(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.wrapLog = func(log coordinator.Log) coordinator.Log {
			return slowLog{log, 250 * time.Millisecond, map[uint64]int{}}
		}
	}, func(t *testing.T, r *rig) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprint("topic-", i)
		}
		var open []txn.ID
		for range 10 {
			id := r.askNew(time.Hour)
			id.want("NEW", nil)
			add := r.askAdd(id.id, names...)
			time.Sleep(time.Minute)
			add.want("ADD", nil)
			open = append(open, id.id)
		}
		var ends []*answer
		for _, id := range open {
			ends = append(ends, r.askEnd(id, txn.Commit))
		}
		time.Sleep(time.Minute)
		for _, a := range ends {
			a.want("END", nil)
		}
	})
}
