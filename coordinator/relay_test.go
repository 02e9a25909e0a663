package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// relay sends requests to another process of the test.
type relay struct{ to *rig }

func (r relay) NewTxn(_ context.Context, tc uint64, cmd *fsm.NewTxn, done func(txn.ID, error)) {
	r.to.group.NewTxn(context.Background(), tc, cmd.Owner, cmd.TTLMillis, cmd.ClientName, cmd.Named, done)
}

func (r relay) AddParticipants(_ context.Context, tc uint64, cmd *fsm.AddParticipants, done func(error)) {
	r.to.group.AddParticipants(context.Background(), txn.ID{Most: tc, Least: cmd.Least}, cmd.Caller, cmd.Participants, done)
}

func (r relay) EndTxn(_ context.Context, tc uint64, cmd *fsm.EndTxn, done func(error)) {
	r.to.group.EndTxn(context.Background(), txn.ID{Most: tc, Least: cmd.Least}, cmd.Caller, cmd.Action, cmd.Named, done)
}

// connection is a client's connection that registered, and goes on when it is told to end.
type connection struct {
	ctx   context.Context
	close context.CancelFunc
	mu    sync.Mutex
	ends  []bool // guarded by mu: what it was told, handed over or not
}

func (r *rig) connect(t testing.TB) *connection {
	t.Helper()
	c := &connection{}
	c.ctx, c.close = context.WithCancel(t.Context())
	t.Cleanup(c.close)
	r.askConnect(c.ctx, func(handedOver bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ends = append(c.ends, handedOver)
	}).want("connect", nil)
	return c
}

func (c *connection) told() []bool {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ends)
}

// inTwo runs a test with two processes on one store, of which the first leads.
func inTwo(t *testing.T, relayed bool, test func(t *testing.T, first, second *rig), changes ...func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		first, second := newRig(t), newRig(t)
		second.store, second.election = first.store, first.election
		if relayed {
			first.opts.Relay, second.opts.Relay = relay{second}, relay{first}
		}
		for _, change := range changes {
			change(first)
			change(second)
		}
		first.start()
		synctest.Wait()
		second.start()
		first.election.Place(first.contender)
		t.Cleanup(func() { first.group.Close() })
		t.Cleanup(func() { second.group.Close() })
		synctest.Wait()
		if a, b := first.group.Statuses()[0], second.group.Statuses()[0]; !a.Serving || !a.Expected || b.Serving || b.Expected {
			t.Fatalf("the first is to serve alone: %+v, %+v", a, b)
		}
		test(t, first, second)
	})
}

// A process that neither leads nor is to lead says so soon: 6 to connects, 20 to requests.
func TestLedElsewhere(t *testing.T) {
	inTwo(t, true, func(t *testing.T, _, second *rig) {
		connect := second.askConnect(t.Context(), func(bool) {})
		early := []*answer{second.askNew(time.Hour), second.askAdd(txn.ID{Least: 1}, "a"), second.askEnd(txn.ID{Least: 1}, txn.Commit)}
		time.Sleep(2 * time.Second)
		connect.want("connect", txn.ErrNotReady)
		for _, a := range early {
			a.want("request to who is not to lead", txn.ErrCoordinatorNotFound)
		}
	})
}

// A request, or a connect, may come before this process knows that it is to lead.
func TestRequestBeforeThePlace(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		connect, created := second.askConnect(t.Context(), func(bool) {}), second.askNew(time.Hour)
		time.Sleep(500 * time.Millisecond)
		if !connect.waits() || !created.waits() {
			t.Fatal("a connect or NEW is answered at once")
		}
		first.election.Place(second.contender)
		connect.want("connect", nil)
		created.want("NEW", nil)
	})
}

// What waits when the coordinator is handed over, and what the connections that registered send later, is answered by the new
// leader, until they have ended.
func TestHandOver(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		first.participants.answer("slow", hangs)
		second.participants.answer("slow", func(call) error { time.Sleep(3 * time.Second); return nil })
		busy, idle := first.connect(t), first.connect(t)
		open, ending := first.open(time.Hour, "a"), first.open(time.Hour, "slow")
		waiting := first.askEndBy(busy.ctx, ending, txn.Commit)
		unregistered := first.askEnd(ending, txn.Commit)
		if !waiting.waits() {
			t.Fatal("the END of a stuck participant is answered")
		}

		first.election.Place(second.contender)
		synctest.Wait()
		if !second.group.Statuses()[0].Serving {
			t.Fatal("the second does not serve")
		}
		unregistered.want("END of a connection that had not registered", txn.ErrCoordinatorNotFound)
		first.askConnect(t.Context(), func(bool) {}).want("connect to the old leader", txn.ErrNotReady)
		first.askNew(time.Hour).want("NEW of a connection that had not registered", txn.ErrCoordinatorNotFound)

		created := first.askNewBy(busy.ctx, time.Hour)
		created.want("NEW through the old leader", nil)
		first.askAddBy(busy.ctx, created.id, "b").want("ADD through the old leader", nil)
		first.askEndBy(busy.ctx, open, txn.Commit).want("END through the old leader", nil)
		if found, err := second.group.Describe(t.Context(), created.id); err != nil || found.Status != txn.Open || len(found.Participants) != 1 {
			t.Errorf("the new leader knows %+v, %v", found, err)
		}
		for _, c := range []*connection{busy, idle} {
			if told := c.told(); !slices.Equal(told, []bool{true}) {
				t.Errorf("a connection is told %v, want that the coordinator was handed over", told)
			}
		}
		if !waiting.waits() {
			t.Error("the END is answered before the participant has applied it")
		}
		time.Sleep(4 * time.Second)
		waiting.want("END that waited at the old leader", nil)
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first.group.HandOver(soon)
		if soon.Err() == nil {
			t.Error("the hand-over ends before the connections have")
		}
		busy.close()
		idle.close()
		soon, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first.group.HandOver(soon)
		if soon.Err() != nil {
			t.Error("the hand-over does not end")
		}
		early := first.askNewBy(busy.ctx, time.Hour)
		time.Sleep(3 * time.Second)
		early.want("NEW of a connection that has ended", txn.ErrCoordinatorNotFound)

		early = first.askNew(time.Hour)
		if !early.waits() {
			t.Fatal("NEW is answered although the second may be handing the coordinator back")
		}
		first.election.Place(first.contender)
		early.want("NEW relayed before the first knew that it is to lead again", nil)
	})
}

// Requests that arrive while the new leader loads wait there.
func TestHandOverWhileTheNewLeaderLoads(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		c := first.connect(t)
		loaded := loading(second)
		first.election.Place(second.contender)
		created := first.askNewBy(c.ctx, time.Hour)
		time.Sleep(5 * time.Second)
		if !created.waits() {
			t.Fatal("NEW is answered while the new leader loads")
		}
		close(loaded)
		created.want("NEW", nil)
	})
}

// A coordinator that comes back keeps the connections that it had.
func TestHandedBack(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		c := first.connect(t)
		first.election.Place(second.contender)
		synctest.Wait()
		first.election.Place(first.contender)
		time.Sleep(500 * time.Millisecond)
		if !first.group.Statuses()[0].Serving {
			t.Fatal("the first does not serve")
		}
		first.askNewBy(c.ctx, time.Hour).want("NEW", nil)
		first.election.Expire(0)
		if told := c.told(); !slices.Equal(told, []bool{true, false}) {
			t.Errorf("the connection is told %v, want that the coordinator was handed over, and later that the term is lost (TC-24)", told)
		}
	})
}

// A transaction is counted where it is opened, and not where its NEW was relayed.
func TestRelayedNewIsCountedOnce(t *testing.T) {
	var counters []*atomic.Int32
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		c := first.connect(t)
		first.askNewBy(c.ctx, time.Hour).want("NEW", nil)
		first.election.Place(second.contender)
		synctest.Wait()
		first.askNewBy(c.ctx, time.Hour).want("NEW through the old leader", nil)
		if a, b := counters[0].Load(), counters[1].Load(); a != 1 || b != 1 {
			t.Errorf("the first counts %d, the second %d, want one each", a, b)
		}
	}, func(r *rig) {
		created := &atomic.Int32{}
		counters = append(counters, created)
		r.opts.Events.Created = func(uint64) { created.Add(1) }
	})
}

// Without a relay a hand-over is a loss: 20 to all that waits, connections closed (TC-24).
func TestHandOverWithoutRelay(t *testing.T) {
	inTwo(t, false, func(t *testing.T, first, second *rig) {
		first.participants.answer("slow", hangs)
		c := first.connect(t)
		id := first.open(time.Hour, "slow")
		waiting := first.askEndBy(c.ctx, id, txn.Commit)
		synctest.Wait()
		first.election.Place(second.contender)
		waiting.want("END", txn.ErrCoordinatorNotFound)
		if told := c.told(); !slices.Equal(told, []bool{false}) {
			t.Errorf("the connection is told %v, want that the term is over", told)
		}
		second.askEnd(id, txn.Commit).want("END at the new leader", nil)
	})
}

var _ coordinator.Relay = relay{}

// slowRelay is a relay whose requests arrive after a second.
type slowRelay struct{ coordinator.Relay }

func (r slowRelay) EndTxn(ctx context.Context, tc uint64, cmd *fsm.EndTxn, done func(error)) {
	time.AfterFunc(time.Second, func() { r.Relay.EndTxn(ctx, tc, cmd, done) })
}

// An END that waits when the coordinator is handed over is ended by the new leader, which has forgotten it before the relayed request
// arrives: where no outcomes are kept, or none of unnamed clients (transactionMetaPersistUnnamedCount=0). That it is not found then
// is no answer to a request that was performed.
func TestHandOverOfForgottenEnds(t *testing.T) {
	for _, kept := range []preserver.Options{{}, {Count: 1000, Retention: 259_200_000, MinTime: 120_000, Max: 1_000_000}} {
		inTwo(t, true, func(t *testing.T, first, second *rig) {
			first.participants.answer("slow", hangs)
			from := first.connect(t)
			ending := first.open(time.Hour, "slow")
			waiting := first.askEndBy(from.ctx, ending, txn.Commit)
			if !waiting.waits() {
				t.Fatal("the END of a stuck participant is answered")
			}
			first.election.Place(second.contender)
			time.Sleep(2 * time.Second)
			waiting.want("END that was handed over", txn.ErrCoordinatorNotFound)
		}, func(r *rig) {
			r.opts.Relay = slowRelay{r.opts.Relay}
			r.opts.Machine.Preserver = kept
		})
	}
}

// Terms that were handed over are no failures (P-29): the process is there at once when it is to lead again, and does not leave the
// coordinator to others.
func TestHandOversAreNoFailures(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		for n := range 12 {
			first.election.Place(second.contender)
			time.Sleep(4 * time.Second)
			first.election.Place(first.contender)
			synctest.Wait()
			if status := first.group.Statuses()[0]; !status.Serving {
				t.Fatalf("the first is to lead for the %dth time, and does not serve: %+v", n+1, status)
			}
			time.Sleep(4 * time.Second)
		}
	}, func(r *rig) { r.opts.GiveUp, r.opts.GiveUpFor = 30*time.Second, 20*time.Second })
}

// A term that was lost is no failure any more when the other process has led since (P-29).
func TestFailuresBeforeOthersLed(t *testing.T) {
	inTwo(t, true, func(t *testing.T, first, second *rig) {
		first.election.Expire(0)
		time.Sleep(time.Second)
		first.election.Place(second.contender)
		time.Sleep(time.Hour)
		first.election.Place(first.contender)
		synctest.Wait()
		first.election.Expire(0)
		time.Sleep(time.Second)
		if status := first.group.Statuses()[0]; !status.Serving {
			t.Errorf("the first is to lead, and does not serve: %+v", status)
		}
	}, func(r *rig) { r.opts.GiveUp, r.opts.GiveUpFor = 30*time.Second, 20*time.Second })
}
