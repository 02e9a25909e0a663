package etcdleader_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/leader/leadertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func contender(t testing.TB, store *etcdstore.Store, options etcdleader.Options) *etcdleader.Leader {
	t.Helper()
	leader, err := etcdleader.New(store.Client(), etcdtest.Space, options, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leader.Close)
	return leader
}

// holds asks etcd whether the fence of a term is true.
func holds(t testing.TB, client *clientv3.Client, term *etcdleader.Term) bool {
	t.Helper()
	fence, key := term.Fence()
	response, err := client.Txn(t.Context()).If(fence).Then(clientv3.OpGet(key)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return response.Succeeded
}

// placement is who is to lead, for all contenders of a test.
type placement struct {
	mu      sync.Mutex
	place   string        // guarded by mu
	changed chan struct{} // guarded by mu
}

func newPlacement() *placement { return &placement{changed: make(chan struct{})} }

func (p *placement) Place(uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place
}

func (p *placement) Leaving() bool { return false }

func (p *placement) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *placement) set(instance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.place = instance
	close(p.changed)
	p.changed = make(chan struct{})
}

// placed shows a Leader as the contract's contender.
type placed struct {
	*etcdleader.Leader
	instance string
}

func (c placed) Win(ctx context.Context, tc uint64) (leadertest.Term, error) {
	term, err := c.Leader.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	return term, nil
}

func TestContract(t *testing.T) {
	leadertest.Run(t, func(t testing.TB) leadertest.Election {
		store, place, instances := etcdtest.Open(t, nil), newPlacement(), 0
		return leadertest.Election{
			Contender: func(t testing.TB) leadertest.Contender {
				instances++
				name := strconv.Itoa(instances)
				return placed{contender(t, store, etcdleader.Options{Lease: 20 * time.Second, Instance: name, Placement: place}), name}
			},
			Place: func(c leadertest.Contender) { place.set(c.(placed).instance) },
			Holds: func(t testing.TB, term leadertest.Term) bool {
				return holds(t, store.Client(), term.(*etcdleader.Term))
			},
			Expire: func(t testing.TB, term leadertest.Term) {
				_, key := term.(*etcdleader.Term).Fence()
				found, err := store.Client().Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Client().Revoke(t.Context(), clientv3.LeaseID(found.Kvs[0].Lease)); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// A seat whose place does not come is taken by another: not before a dead leader's lease would have run out, and a second. It
// is not given back to one that is stuck, but to the next that is placed.
func TestStuckPlace(t *testing.T) {
	store, place := etcdtest.Open(t, nil), newPlacement()
	place.set("stuck")
	here := contender(t, store, etcdleader.Options{Lease: 3 * time.Second, Instance: "here", Placement: place})
	began := time.Now()
	term := win(t, here)
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("the seat of another was taken after %v", took)
	}
	place.set("stuck")
	select {
	case <-term.Elsewhere():
		t.Error("the seat is to be given to who did not come")
	case <-time.After(50 * time.Millisecond):
	}
	place.set("third")
	select {
	case <-term.Elsewhere():
	case <-time.After(30 * time.Second):
		t.Error("the leader does not hear of a new place")
	}
}

func TestHolder(t *testing.T) {
	store := etcdtest.Open(t, nil)
	a := contender(t, store, etcdleader.Options{Instance: "a"})
	b := contender(t, store, etcdleader.Options{Instance: "b"})
	if instance, number, err := b.Holder(t.Context(), 1); instance != "" || number != 0 || err != nil {
		t.Errorf("nobody leads: %q, %d, %v", instance, number, err)
	}
	term := win(t, a)
	if instance, number, err := b.Holder(t.Context(), 1); instance != "a" || number != term.Number() || err != nil {
		t.Errorf("a leads in term %d: %q, %d, %v", term.Number(), instance, number, err)
	}
	if _, err := etcdleader.New(store.Client(), etcdtest.Space, etcdleader.Options{Instance: "a b"}, zerolog.Nop()); err == nil {
		t.Error("an instance with a blank was accepted")
	}
}
