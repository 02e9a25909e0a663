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
		case strings.Contains(err.Error(), "closed network connection"), strings.Contains(err.Error(), "elected another leader"):
			lost++
		default:
			t.Errorf("a write while a member hangs: %v", err)
		}
	}
	if lost == 0 {
		t.Error("the member that hangs was asked nothing")
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
	pause(t, hung)
	losesWrites(t, store)
	eventually(t, "left out", func() bool { return !uses(store, hung) })
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := store.Client().Put(ctx, "key", "value")
		cancel()
		if err != nil {
			t.Fatal(err)
		}
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
	renewed := keepLease(t, store)
	for _, hung := range followers { // one of them has the stream
		pause(t, hung)
		eventually(t, "left out", func() bool { return !uses(store, hung) })
		awaitRenewals(t, renewed, wholeLease)
		resumed(t, store, hung)
	}
}

// Leases outlive a leader, whatever of their renewals has been passed on to it.
func TestLeasesOutliveTheLeader(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	leader, followers := byRole(t, cluster)
	store := connect(t, optionsFor(followers[0].URL(), followers[1].URL()))
	const phases = 8 // over the two seconds between two renewals
	var all []<-chan *clientv3.LeaseKeepAliveResponse
	phase := time.NewTicker(2 * time.Second / phases)
	defer phase.Stop()
	for range phases {
		all = append(all, keepLease(t, store))
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

func keepLease(t *testing.T, store *etcdstore.Store) (renewed <-chan *clientv3.LeaseKeepAliveResponse) {
	t.Helper()
	lease, err := store.Client().Grant(t.Context(), 6)
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
