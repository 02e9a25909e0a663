package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// loading holds back the load until the channel is closed.
func loading(r *rig) chan struct{} {
	r.holdLoad = make(chan struct{})
	return r.holdLoad
}

// TestConnectWaitsForTheLoad holds TC-7: a connect that arrives while the coordinator loads is answered when it serves, or with 6
// after LoadWait.
func TestConnectWaitsForTheLoad(t *testing.T) {
	var loaded chan struct{}
	inBubble(t, func(r *rig) { loaded = loading(r) }, func(t *testing.T, r *rig) {
		early := r.askConnect(t.Context(), func(bool) {})
		left, leave := context.WithCancel(t.Context())
		gone := r.askConnect(left, func(bool) {})
		time.Sleep(10 * time.Second)
		leave()
		gone.want("connect of a connection that is gone", context.Canceled)
		late := r.askConnect(t.Context(), func(bool) {})
		if !early.waits() || !late.waits() {
			t.Fatal("a connect is answered while the coordinator loads")
		}
		time.Sleep(10 * time.Second)
		early.want("connect after LoadWait", txn.ErrNotReady)
		close(loaded)
		late.want("connect when it serves", nil)
		r.askConnect(t.Context(), func(bool) {}).want("connect to one that serves", nil)
	})
}

// TestRequestsWaitForTheLoad: a request that arrives while the coordinator loads is served afterwards, or answered with 20.
func TestRequestsWaitForTheLoad(t *testing.T) {
	var loaded chan struct{}
	inBubble(t, func(r *rig) { loaded = loading(r) }, func(t *testing.T, r *rig) {
		began := time.Now()
		early := r.askNew(time.Hour)
		time.Sleep(19 * time.Second)
		late := r.askNew(time.Hour)
		if !early.waits() {
			t.Error("a request is answered while the coordinator loads")
		}
		time.Sleep(5 * time.Second)
		early.want("NEW after LoadWait", txn.ErrCoordinatorNotFound)
		if waited := early.at.Sub(began); waited < 20*time.Second || waited > 22*time.Second {
			t.Errorf("NEW waited %s, want 20s", waited)
		}
		if !late.waits() {
			t.Error("a later request is answered with an earlier one")
		}
		close(loaded)
		late.want("NEW when it serves", nil)
	})
}

// TestUnknownCoordinator holds TC-1 for requests that name a coordinator that does not exist.
func TestUnknownCoordinator(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		id := txn.ID{Most: 1, Least: 1}
		r.askEnd(id, txn.Commit).want("END", txn.ErrCoordinatorNotFound)
		r.askAdd(id, "a").want("ADD", txn.ErrCoordinatorNotFound)
		a := &answer{t: t}
		r.group.NewTxn(context.Background(), 1, txn.Owner{}, 1000, "", false, a.give)
		a.want("NEW", txn.ErrCoordinatorNotFound)
		if a.id.Most != 1 {
			t.Errorf("the answer names coordinator %d, want that of the request", a.id.Most)
		}
		if _, err := r.group.Describe(t.Context(), id); !errors.Is(err, txn.ErrCoordinatorNotFound) {
			t.Errorf("describe: %v", err)
		}
	})
}

// TestLostLease holds TC-22: a term that ends is followed by another without any client.
func TestLostLease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		closed := 0
		r.askConnect(t.Context(), func(bool) { closed++ }).want("connect", nil)
		first := r.group.Statuses()[0]
		r.election.Expire(0)
		synctest.Wait()
		if closed != 1 || r.group.Statuses()[0].Serving {
			t.Errorf("closed %d connections, serving %t, want 1 and false", closed, r.group.Statuses()[0].Serving)
		}
		if len(r.termsEnded) != 1 || !errors.Is(r.termsEnded[0], txn.ErrFenced) {
			t.Errorf("terms ended: %v, want one that was fenced", r.termsEnded)
		}
		time.Sleep(time.Second)
		if second := r.group.Statuses()[0]; !second.Serving || second.Term <= first.Term {
			t.Errorf("after term %d comes %+v", first.Term, second)
		}
	})
}

// TestRestart holds FC-07, TC-22 and FC-10: after a restart, without any client, what is decided is driven on and what is open ends at
// its deadline, at once if that has passed; ids go on growing.
func TestRestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.participants.answer("committed", hangs)
		committed := r.open(time.Hour, "committed")
		r.askEnd(committed, txn.Commit).waits()
		passed, coming := r.open(10*time.Second, "passed"), r.open(time.Minute, "coming")
		began := time.Now()
		r.group.Close()
		r.participants.answer("committed", nil)
		time.Sleep(30 * time.Second)
		r.start()
		synctest.Wait()
		if calls := r.participants.of("committed"); len(calls) != 2 || calls[1].action != txn.Commit || calls[1].id != committed {
			t.Errorf("calls of the participant of the committed transaction: %v", calls)
		}
		if calls := r.participants.of("passed"); len(calls) != 1 || calls[0].action != txn.Abort || calls[0].id != passed {
			t.Errorf("calls of the participant whose deadline has passed: %v", calls)
		}
		if calls := r.participants.of("coming"); len(calls) != 0 {
			t.Errorf("aborted before its deadline: %v", calls)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls := r.participants.of("coming"); len(calls) != 1 || calls[0].at.Sub(began) != time.Minute {
			t.Errorf("calls of the participant whose deadline came: %v", calls)
		}
		r.askEnd(committed, txn.Commit).want("END of the committed one", nil)
		if id := r.open(time.Hour); id.Least <= coming.Least {
			t.Errorf("id %s after %s", id, coming)
		}
	})
}

// TestShutdown holds P-30 and TC-5: an append that is under way is answered as it ends, everything else is answered once and without a
// promise, and nothing runs on.
func TestShutdown(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.Machine.MaxActive = 3 }, func(t *testing.T, r *rig) {
		r.participants.answer("a", hangs)
		closed := 0
		r.askConnect(t.Context(), func(bool) { closed++ }).want("connect", nil)
		driving, open := r.open(time.Hour, "a"), r.open(time.Hour)
		waiting := r.askEnd(driving, txn.Commit)
		waiting.waits()
		r.open(time.Hour)
		refused := r.askNew(time.Hour)
		refused.waits()
		release := r.holdWrites()
		appending := r.askEnd(open, txn.Commit)
		appending.waits()
		queued := r.askNew(time.Hour)
		done, began := make(chan struct{}), time.Now()
		go func() { r.group.Close(); close(done) }()
		synctest.Wait()
		release()
		<-done
		if took := time.Since(began); took != 0 {
			t.Errorf("the shutdown waits %s for nothing", took)
		}
		appending.want("END whose append was under way", nil)
		waiting.want("END that waited for its participant", txn.ErrCoordinatorNotFound)
		queued.want("NEW that waited for its batch", txn.ErrCoordinatorNotFound)
		refused.want("NEW that was held back", txn.ErrTooManyRequests)
		r.askNew(time.Hour).want("NEW afterwards", txn.ErrCoordinatorNotFound)
		r.askConnect(t.Context(), func(bool) {}).want("connect afterwards", txn.ErrNotReady)
		if closed != 1 || r.participants.inFlight != 0 {
			t.Errorf("%d connections closed, %d calls in flight, want 1 and 0", closed, r.participants.inFlight)
		}
	})
}

// TestShutdownWhileLoading: nobody who waits for the load is forgotten.
func TestShutdownWhileLoading(t *testing.T) {
	inBubble(t, func(r *rig) { loading(r) }, func(t *testing.T, r *rig) {
		connect, request := r.askConnect(t.Context(), func(bool) {}), r.askNew(time.Hour)
		connect.waits()
		began := time.Now()
		r.group.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("the shutdown waits %s for nothing", took)
		}
		connect.want("connect", txn.ErrNotReady)
		request.want("NEW", txn.ErrCoordinatorNotFound)
		if r.failed != 0 {
			t.Error("a load that was cut short is reported as failed")
		}
	})
}

// TestCorruptLog: a log that cannot be understood stops the load with its reason, which is seen, and nothing is guessed.
func TestCorruptLog(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		id := r.open(time.Hour)
		good := r.store.Value(0, 1)
		r.group.Close()
		r.store.SetValue(0, 1, append(good[:len(good)-1:len(good)-1], good[len(good)-1]^1))
		r.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		status := r.group.Statuses()[0]
		if status.Serving || !strings.Contains(status.LoadError, "corrupt value at") {
			t.Errorf("serving %t, load error %q", status.Serving, status.LoadError)
		}
		if r.failed < 5 || r.failed > 20 {
			t.Errorf("%d loads in a minute, want some, with growing pauses", r.failed)
		}
		r.askNew(time.Hour).waits()
		r.store.SetValue(0, 1, good)
		time.Sleep(20 * time.Second)
		r.askEnd(id, txn.Commit).want("END once it loads", nil)
		if status := r.group.Statuses()[0]; status.LoadError != "" {
			t.Errorf("the load error stays: %q", status.LoadError)
		}
	})
}

// TestStatus: what operators and metrics read.
func TestStatus(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		open := r.open(time.Hour, "a")
		done := r.open(time.Hour)
		r.askEnd(done, txn.Commit).want("END", nil)
		s := r.group.Statuses()[0]
		if !s.Serving || s.Live != 1 || s.Outcomes != 1 || s.LastIssued != done.Least || s.LowWaterMark != open.Least-1 ||
			s.LogBytes <= 0 || s.LogLiveBytes <= 0 || s.Term == 0 || s.Recovered.IsZero() {
			t.Errorf("status %+v", s)
		}
		live, err := r.group.List(t.Context(), func(d *fsm.Description) bool { return d.Status == txn.Open }, 10)
		if err != nil || len(live) != 1 || live[0].ID != open {
			t.Errorf("list: %v, %v", live, err)
		}
		found, err := r.group.Describe(t.Context(), done)
		if err != nil || found.Status != txn.Committed || found.Ended == 0 {
			t.Errorf("describe: %+v, %v", found, err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		r.group.Close()
		if _, err := r.group.List(cancelled, nil, 0); err == nil {
			t.Error("a list without its coordinator is taken for a whole one")
		}
	})
}

// TestForgetting: outcomes leave memory in passes of their own, without a client (P-24).
func TestForgetting(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.Machine.Preserver.Retention = time.Hour.Milliseconds() }, func(t *testing.T, r *rig) {
		for range 3 {
			r.askEnd(r.open(time.Hour), txn.Commit).want("END", nil)
		}
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n := r.group.Statuses()[0].Outcomes; n != 3 {
			t.Errorf("%d outcomes before their time, want 3", n)
		}
		time.Sleep(time.Minute + r.opts.ExpireInterval)
		synctest.Wait()
		if n := r.group.Statuses()[0].Outcomes; n != 0 {
			t.Errorf("%d outcomes are left, want 0", n)
		}
	})
}

// TestEvents: every event is told once, with what it is about.
func TestEvents(t *testing.T) {
	var created, ended, timedOut, expired, contrary, rejected, began int
	inBubble(t, func(r *rig) {
		r.opts.Events.Created = func(uint64) { created++ }
		r.opts.Events.Ended = func(_ uint64, _ txn.Action, byDeadline bool, _ time.Duration) {
			ended++
			if byDeadline {
				timedOut++
			}
		}
		r.opts.Events.Expired = func(uint64, txn.ID) { expired++ }
		r.opts.Events.Contrary = func(uint64, txn.ID, txn.Action) { contrary++ }
		r.opts.Events.RequestRejected = func(uint64, error) { rejected++ }
		r.opts.Events.TermBegan = func(uint64, int64, int, int, time.Duration) { began++ }
	}, func(t *testing.T, r *rig) {
		done := r.open(time.Hour, "a")
		r.open(time.Second, "a")
		r.askEnd(done, txn.Commit).want("END", nil)
		r.askEnd(done, txn.Abort).wantStatus("END", txn.Committed)
		time.Sleep(time.Minute)
		synctest.Wait()
		if created != 2 || ended != 2 || timedOut != 1 || expired != 1 || contrary != 1 || rejected != 1 || began != 1 {
			t.Errorf("created %d, ended %d, timed out %d, expired %d, contrary %d, rejected %d, began %d",
				created, ended, timedOut, expired, contrary, rejected, began)
		}
	})
}

// TestClockBehind: ids that were reserved under a later clock are told to an operator.
func TestClockBehind(t *testing.T) {
	var behind time.Duration
	inBubble(t, func(r *rig) {
		r.opts.Events.ClockBehind = func(_ uint64, by time.Duration) { behind = by }
	}, func(t *testing.T, r *rig) {
		r.open(time.Hour)
		r.group.Close()
		r.opts.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		r.start()
		synctest.Wait()
		if behind < 59*time.Minute || behind > time.Hour {
			t.Errorf("the clock is %s behind, want about an hour", behind)
		}
	})
}

var _ coordinator.Participants = (*participants)(nil)

// unreadableLog cannot be loaded, or loses its store once it is.
type unreadableLog struct {
	coordinator.Log
	load, prove error
}

func (l unreadableLog) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	if l.load != nil {
		return 0, l.load
	}
	return l.Log.Load(ctx, visit)
}

func (l unreadableLog) Prove(context.Context) error { return l.prove }

// An operator hears why a coordinator does not answer, one who only looks before clients stop waiting for it, and never that there is none.
func TestInspectionHearsTheReason(t *testing.T) {
	for name, test := range map[string]struct {
		configure func(*rig)
		want      string
	}{
		"loading": {func(r *rig) { loading(r) }, "loading"},
		"cannot load": {func(r *rig) {
			r.wrapLog = func(l coordinator.Log) coordinator.Log {
				return unreadableLog{Log: l, load: errors.New("permission denied")}
			}
		}, "permission denied"},
		"term ends": {func(r *rig) {
			r.wrapLog = func(l coordinator.Log) coordinator.Log { return unreadableLog{Log: l, prove: txn.ErrFenced} }
		}, "coordinator 0"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.configure, func(t *testing.T, r *rig) {
				synctest.Wait()
				id := txn.ID{Most: 0, Least: 1}
				for what, ask := range map[string]func() error{
					"list":     func() error { _, err := r.group.List(t.Context(), nil, 0); return err },
					"describe": func() error { _, err := r.group.Describe(t.Context(), id); return err },
					"resolve":  func() error { return r.group.Resolve(t.Context(), id, topics("a")[0], "root") },
				} {
					began := time.Now()
					err := ask()
					if !errors.Is(err, txn.ErrNotReady) || errors.Is(err, txn.ErrCoordinatorNotFound) || !strings.Contains(err.Error(), test.want) {
						t.Errorf("%s: %v, want %q", what, err, test.want)
					}
					if waited := time.Since(began); what != "resolve" && waited >= r.opts.LoadWait {
						t.Errorf("%s waited %s", what, waited)
					}
				}
			})
		})
	}
}
