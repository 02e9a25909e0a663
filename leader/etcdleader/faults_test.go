package etcdleader_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
)

var errLost = errors.New("connection lost")

// faultyClient hands every commit to a func that decides its fate.
type faultyClient struct {
	*clientv3.Client
	mu     sync.Mutex
	commit func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) // guarded by mu
	waits  func()                                                                            // guarded by mu; called when a watch has begun
}

func (c *faultyClient) set(commit func(func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commit = commit
}

func (c *faultyClient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	watch := c.Client.Watch(ctx, key, opts...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits != nil {
		c.waits()
	}
	return watch
}

// inVain has a contender try to win until it waits for the end of another one's term.
func inVain(t *testing.T, client *faultyClient, contender *etcdleader.Leader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client.mu.Lock()
	client.waits = cancel
	client.mu.Unlock()
	if term, err := contender.Win(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("term %v, %v beside that of another contender", term, err)
	}
}

func (c *faultyClient) Txn(ctx context.Context) clientv3.Txn {
	// The fate of a request is not that of its caller: etcd may get it after the caller has given up.
	return &faultyTxn{Txn: c.Client.Txn(context.WithoutCancel(ctx)), client: c}
}

type faultyTxn struct {
	clientv3.Txn
	client *faultyClient
}

func (t *faultyTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *faultyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *faultyTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	t.client.mu.Lock()
	commit := t.client.commit
	t.client.mu.Unlock()
	if commit == nil {
		return t.Txn.Commit()
	}
	return commit(t.Txn.Commit)
}

func newFaulty(t testing.TB, options etcdleader.Options) (*faultyClient, *etcdleader.Leader) {
	t.Helper()
	client := &faultyClient{Client: etcdtest.Open(t, nil).Client()}
	return client, faulty(t, client, options)
}

func faulty(t testing.TB, client *faultyClient, options etcdleader.Options) *etcdleader.Leader {
	t.Helper()
	leader, err := etcdleader.New(client, etcdtest.Space, options, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leader.Close)
	return leader
}

func win(t testing.TB, leader *etcdleader.Leader) *etcdleader.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	term, err := leader.Win(ctx, 1)
	if err != nil {
		t.Fatalf("win: %v", err)
	}
	return term
}

// A leader key whose creation was not answered is never led under: writes of that term could be on their way from nowhere.
func TestUnansweredCreation(t *testing.T) {
	client, leader := newFaulty(t, etcdleader.Options{})
	var unanswered int64
	client.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		client.set(nil)
		response, err := commit()
		if err != nil {
			return nil, err
		}
		unanswered = response.Header.Revision
		return nil, errLost
	})
	term := win(t, leader)
	if unanswered == 0 || term.Number() <= unanswered {
		t.Errorf("term %d, want a later one than the unanswered %d", term.Number(), unanswered)
	}
	if !holds(t, client.Client, term) {
		t.Error("the fence of the won term does not hold")
	}
}

// A deletion that was not answered is repeated before the next term begins.
func TestUnansweredDeletion(t *testing.T) {
	for _, applied := range []bool{true, false} {
		client, leader := newFaulty(t, etcdleader.Options{})
		first := win(t, leader)
		client.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
			client.set(nil)
			if applied {
				if _, err := commit(); err != nil {
					return nil, err
				}
			}
			return nil, errLost
		})
		second := win(t, leader)
		if second.Number() <= first.Number() || holds(t, client.Client, first) || !holds(t, client.Client, second) {
			t.Errorf("deletion applied %v: term %d after %d", applied, second.Number(), first.Number())
		}
	}
}

// A creation and a deletion that etcd applies long after, in a later term, change nothing.
func TestDelayedRequests(t *testing.T) {
	client, leader := newFaulty(t, etcdleader.Options{})
	delayed := make(chan func() (*clientv3.TxnResponse, error), 2)
	delay := func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		delayed <- commit
		client.set(nil)
		return nil, errLost
	}
	client.set(delay)
	first := win(t, leader) // its first creation is delayed
	client.set(delay)
	second := win(t, leader) // its first deletion is delayed
	for range 2 {
		if _, err := (<-delayed)(); err != nil {
			t.Fatal(err)
		}
	}
	if holds(t, client.Client, first) || !holds(t, client.Client, second) {
		t.Error("a delayed request changed who leads")
	}
}

// A foreign key goes with its lease only; the only process on a store need not wait for it.
func TestForeignKey(t *testing.T) {
	store := etcdtest.Open(t, nil)
	dead := contender(t, store, etcdleader.Options{Lease: time.Hour})
	first := win(t, dead)
	dead.Close()

	client := &faultyClient{Client: store.Client()}
	inVain(t, client, faulty(t, client, etcdleader.Options{}))
	if !holds(t, store.Client(), first) {
		t.Fatal("a foreign key was deleted")
	}
	second := win(t, contender(t, store, etcdleader.Options{Exclusive: true}))
	if second.Number() <= first.Number() || holds(t, store.Client(), first) {
		t.Error("the exclusive process did not take over")
	}
}

func TestRefusedForGood(t *testing.T) {
	client, leader := newFaulty(t, etcdleader.Options{})
	client.set(func(func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		return nil, rpctypes.ErrPermissionDenied
	})
	if _, err := leader.Win(t.Context(), 1); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("%v, want the refusal", err)
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	store := etcdtest.Open(t, nil)
	leader := contender(t, store, etcdleader.Options{Lease: 4 * time.Second})
	term := win(t, leader)
	_, key := term.Fence()
	found, err := store.Client().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	lease := clientv3.LeaseID(found.Kvs[0].Lease)
	seen := false // what is left, in whole seconds, grew again
	for left, deadline := time.Duration(0), time.Now().Add(30*time.Second); !seen && time.Now().Before(deadline); {
		state, err := store.Client().TimeToLive(t.Context(), lease)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(state.TTL)
		seen = left != 0 && now > left
		left = now
		time.Sleep(10 * time.Millisecond)
	}
	if !seen || !holds(t, store.Client(), term) {
		t.Errorf("renewed %v, the term holds %v", seen, holds(t, store.Client(), term))
	}
	if _, err := etcdleader.New(store.Client(), etcdtest.Space, etcdleader.Options{Lease: time.Millisecond}, zerolog.Nop()); err == nil {
		t.Error("a lease below a second was accepted")
	}
}

// Of two contenders that both found the seat free, one takes it.
func TestSeatTakenMeanwhile(t *testing.T) {
	client, late := newFaulty(t, etcdleader.Options{})
	quick, err := etcdleader.New(client.Client, etcdtest.Space, etcdleader.Options{}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quick.Close)
	var taken *etcdleader.Term
	client.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		client.set(nil)
		taken = win(t, quick)
		return commit()
	})
	inVain(t, client, late)
	if !holds(t, client.Client, taken) {
		t.Error("the term of the first was ended")
	}
}

// A leader whose key somebody else has written gives its term up and wins another one, whose key names it again.
func TestOverwrittenKey(t *testing.T) {
	store := etcdtest.Open(t, nil)
	leader := contender(t, store, etcdleader.Options{Instance: "leader"})
	first := win(t, leader)
	overwrite(t, store.Client(), first)
	select {
	case <-first.Lost():
	case <-time.After(30 * time.Second):
		t.Fatal("the leader does not notice that its key is not its own")
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := win(t, leader)
	if instance, number, err := leader.Holder(t.Context(), 1); instance != "leader" || number != second.Number() || err != nil {
		t.Errorf("led by %q in term %d, %v; won term %d", instance, number, err, second.Number())
	}
	if second.Number() <= first.Number() || holds(t, store.Client(), first) {
		t.Errorf("term %d after term %d, which holds: %v", second.Number(), first.Number(), holds(t, store.Client(), first))
	}
}

// A leader key that hangs on no lease would stay when its writer is gone: whoever finds it deletes it.
func TestKeyWithoutLease(t *testing.T) {
	store := etcdtest.Open(t, nil)
	dead := contender(t, store, etcdleader.Options{})
	first := win(t, dead)
	dead.Close()
	overwrite(t, store.Client(), first)
	if second := win(t, contender(t, store, etcdleader.Options{})); second.Number() <= first.Number() {
		t.Errorf("term %d after term %d", second.Number(), first.Number())
	}
}

func overwrite(t *testing.T, client *clientv3.Client, term *etcdleader.Term) {
	t.Helper()
	_, key := term.Fence()
	if _, err := client.Put(t.Context(), key, "foreign"); err != nil {
		t.Fatal(err)
	}
}
