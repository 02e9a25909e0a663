package etcdstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
)

// byRole returns the leader of a cluster and the others.
func byRole(t *testing.T, cluster *etcdprocess.Cluster) (leader *etcdprocess.Member, followers []*etcdprocess.Member) {
	t.Helper()
	leader, err := cluster.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leader, slices.DeleteFunc(slices.Clone(cluster.Members), func(m *etcdprocess.Member) bool { return m == leader })
}

func pause(t *testing.T, m *etcdprocess.Member) {
	t.Helper()
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
}

// resumed ends a pause, and waits until the member is used again.
func resumed(t *testing.T, store *etcdstore.Store, m *etcdprocess.Member) {
	t.Helper()
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "used again", func() bool { return uses(store, m) })
}

func uses(store *etcdstore.Store, m *etcdprocess.Member) bool {
	return slices.Contains(store.Client().Endpoints(), m.URL())
}

// losesWrites expects that of writes without a deadline, more than there are members, some are ended by the store, and the others end
// well. A member is cut off, too, as long as it does not know the leader that another one has elected.
func losesWrites(t *testing.T, store *etcdstore.Store) {
	t.Helper()
	const count = 9
	ended := make(chan error, count)
	for range count {
		go func() {
			_, err := store.Client().Put(t.Context(), "key", "value")
			ended <- err
		}()
	}
	lost := 0
	for range count {
		switch err := <-ended; {
		case err == nil:
		case endedByStore(err):
			lost++
		default:
			t.Errorf("a write while a member hangs: %v", err)
		}
	}
	if lost == 0 {
		t.Error("the member that hangs was asked nothing")
	}
}

// endedByStore tells the errors of requests that the store has ended.
func endedByStore(err error) bool {
	return strings.Contains(err.Error(), "closed network connection") || strings.Contains(err.Error(), "elected another leader")
}

// askedAll returns when every member has answered a request: the client is connected to all.
func askedAll(t *testing.T, store *etcdstore.Store, cluster *etcdprocess.Cluster) {
	t.Helper()
	asked := map[uint64]bool{}
	eventually(t, "all asked", func() bool {
		got, err := store.Client().Get(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		asked[got.Header.MemberId] = true
		return len(asked) == len(cluster.Members)
	})
}

// written stores a key while two of three members are well. Under load one of them may be cut for a moment: its write is repeated.
func written(t *testing.T, store *etcdstore.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		_, err := store.Client().Put(ctx, "key", "value")
		if err == nil {
			return
		}
		if !endedByStore(err) {
			t.Fatal(err)
		}
	}
}

// A member that hangs is given no requests after a few looks, and those that it has got have an unknown result then, not when their
// callers or the connection have lost patience. When it goes on it is used again.
func TestMemberThatHangs(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	store := connect(t, optionsFor(cluster.Endpoints()...))
	_, followers := byRole(t, cluster)
	hung := followers[0]
	askedAll(t, store, cluster)
	pause(t, hung)
	losesWrites(t, store)
	eventually(t, "left out", func() bool { return !uses(store, hung) })
	for range 20 {
		written(t, store)
	}
	resumed(t, store, hung)
}

// What members have passed on to a leader that hangs has an unknown result as soon as another leads, not when etcd's own patience ends.
func TestLeaderThatHangs(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	leader, followers := byRole(t, cluster)
	store := connect(t, optionsFor(followers[0].URL(), followers[1].URL()))
	pause(t, leader)
	losesWrites(t, store)
	if err := leader.Resume(); err != nil {
		t.Fatal(err)
	}
}

// Leases outlive a member through which they were renewed.
func TestLeaseOutlivesAMember(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	_, followers := byRole(t, cluster)
	store := connect(t, optionsFor(followers[0].URL(), followers[1].URL()))
	renewed := keepLease(t, store, 6)
	for _, hung := range followers { // one of them has the stream
		pause(t, hung)
		eventually(t, "left out", func() bool { return !uses(store, hung) })
		awaitRenewals(t, renewed, wholeLease)
		resumed(t, store, hung)
	}
}

// Leases outlive a leader, whatever of their renewals has been passed on to it. An election takes one second or two, and four where votes
// are split; these leases outlive that one, too, and not the seven seconds of etcd's own patience.
func TestLeasesOutliveTheLeader(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	leader, followers := byRole(t, cluster)
	store := connect(t, optionsFor(followers[0].URL(), followers[1].URL()))
	const (
		ttl    = 10
		phases = 8 // over the time between two renewals, a third of that
	)
	var all []<-chan *clientv3.LeaseKeepAliveResponse
	phase := time.NewTicker(ttl * time.Second / 3 / phases)
	defer phase.Stop()
	for range phases {
		all = append(all, keepLease(t, store, ttl))
		<-phase.C
	}
	pause(t, leader)
	awaitRenewals(t, all[0], wholeLease)
	for _, renewed := range all[1:] {
		awaitRenewals(t, renewed, 1)
	}
	if err := leader.Resume(); err != nil {
		t.Fatal(err)
	}
}

func keepLease(t *testing.T, store *etcdstore.Store, ttl int64) (renewed <-chan *clientv3.LeaseKeepAliveResponse) {
	t.Helper()
	lease, err := store.Client().Grant(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err = store.Client().KeepAlive(t.Context(), lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	return renewed
}

// wholeLease is more renewals than fit into the time of a lease.
const wholeLease = 4

// awaitRenewals waits for some that have not come yet.
func awaitRenewals(t *testing.T, renewed <-chan *clientv3.LeaseKeepAliveResponse, count int) {
	t.Helper()
	for range len(renewed) + count {
		if _, open := <-renewed; !open {
			t.Fatal("the lease has run out")
		}
	}
}
