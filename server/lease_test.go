package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// leaderLease is the lease that the leader key of a coordinator hangs on.
func leaderLease(t *testing.T, client *clientv3.Client, s *Server, tc uint64) clientv3.LeaseID {
	t.Helper()
	found, err := client.Get(t.Context(), s.options.space().Leader(tc))
	if err != nil || len(found.Kvs) == 0 {
		t.Fatalf("leader key of %d: %v, %v", tc, found, err)
	}
	return clientv3.LeaseID(found.Kvs[0].Lease)
}

// opened are two transactions: one to be committed, one to be forgotten by its client.
type opened struct {
	kept, abandoned txn.ID
	deadline        time.Time // of the abandoned one
}

func open(ctx context.Context, t *testing.T, client *wireclient.Conn, tc uint64, ttl time.Duration) (o opened) {
	t.Helper()
	var kept, abandoned error
	o.kept, kept = client.Begin(ctx, tc, 60_000, "")
	o.deadline = time.Now().Add(ttl)
	o.abandoned, abandoned = client.Begin(ctx, tc, uint64(ttl.Milliseconds()), "")
	if err := errors.Join(kept, abandoned); err != nil {
		t.Fatal(err)
	}
	return o
}

// survive commits one transaction at s, which leads or is about to, and waits until the other is aborted by its deadline.
func (o opened) survive(ctx context.Context, t *testing.T, s *Server) {
	t.Helper()
	var client *wireclient.Conn
	until(t, "the coordinator is found", func() (found bool) {
		var err error
		client, err = wireclient.DialTC(ctx, s.ServiceURL(), o.kept.Most)
		return err == nil
	})
	defer client.Close()
	if err := client.End(ctx, o.kept, txn.Commit, ""); err != nil {
		t.Errorf("commit %s: %v", o.kept, err)
	}
	until(t, "the abandoned transaction is aborted", func() bool {
		found, err := s.group.Describe(ctx, o.abandoned)
		return err == nil && found.Status == txn.Aborted
	})
	if early := time.Until(o.deadline); early > 0 {
		t.Errorf("the abandoned transaction was aborted %v before its deadline", early)
	}
}

// FC-50.1: an owner whose lease is revoked notices, stops answering as owner, gets a new lease and loads again, without a
// restart; open transactions survive, and abandoned ones expire on time.
func TestRevokedLease(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	s := start(t, load(t, shared(etcd, 1)...))
	evenly(t, 1, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := etcd.Client(t)
	client := dialTC(ctx, t, s)
	o := open(ctx, t, client, 0, 4*time.Second)
	term := s.group.Statuses()[0].Term
	if _, err := store.Revoke(ctx, leaderLease(t, store, s, 0)); err != nil {
		t.Fatal(err)
	}
	// It may have noticed, and closed the connection, before it is asked.
	_, err := client.Begin(ctx, 0, 60_000, "")
	if !refusedWith(err, pulsarproto.ServerError_TransactionCoordinatorNotFound) && !errors.Is(err, wireclient.ErrClosed) {
		t.Errorf("NEW at an owner without a lease: %v, want TransactionCoordinatorNotFound or the connection closed", err)
	}
	select {
	case <-client.Done(): // TC-24
	case <-ctx.Done():
		t.Error("the connection is not closed")
	}
	o.survive(ctx, t, s)
	if now := s.group.Statuses()[0].Term; now <= term {
		t.Errorf("term %d after term %d", now, term)
	}
}

// FC-50.1, .2: an owner that etcd does not answer for longer than its lease answers nothing as owner; another one takes over,
// with everything that was open, and gives back what it took when the first is back, which needs no restart.
func TestEtcdAwayLongerThanTheLease(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	link := faultnet.New(t, strings.TrimPrefix(etcd.Endpoint, "http://"))
	set := shared(etcd, 2)
	behind := start(t, load(t, append(set, "metadataStoreUrl=etcd:http://"+link.Addr(), "coordinatorLeaseSeconds=2")...))
	other := start(t, load(t, set...))
	evenly(t, 2, behind, other)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tc := led(behind)[0]
	client, err := wireclient.DialTC(ctx, other.ServiceURL(), tc)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := open(ctx, t, client, tc, 8*time.Second)

	link.Set(faultnet.Condition{HoldRequests: true, HoldAnswers: true})
	answered := make(chan error, 1)
	go func() {
		_, err := client.Begin(ctx, tc, 60_000, "")
		answered <- err
	}()
	until(t, "the other leads both", func() bool { return len(led(other)) == 2 })
	if err := <-answered; err == nil {
		t.Error("NEW succeeded at an owner whose lease was over")
	}
	o.survive(ctx, t, other)

	link.Heal()
	evenly(t, 2, behind, other)
	again, err := wireclient.DialTC(ctx, other.ServiceURL(), tc)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.End(ctx, o.kept, txn.Commit, ""); err != nil {
		t.Errorf("commit again, after everything has healed: %v", err)
	}
	if err := again.End(ctx, o.abandoned, txn.Commit, ""); !refusedWith(err, pulsarproto.ServerError_InvalidTxnStatus) {
		t.Errorf("commit of what was aborted: %v", err)
	}
}

// A session that is lost begins again, and the instance comes back to the sight of others.
func TestRevokedSession(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 4)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, 4, first, second)
	lost := first.cluster.Session().Lease
	if _, err := etcd.Client(t).Revoke(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	until(t, "another session", func() bool { return first.cluster.Session().Lease != lost })
	until(t, fmt.Sprint("the first is back at ", first.cluster.Self().ID), func() bool { return len(second.cluster.Instances()) == 2 })
	evenly(t, 4, first, second)
}
