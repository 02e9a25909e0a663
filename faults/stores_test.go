package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
)

// etcdLease is coordinatorLeaseSeconds of servers on an etcd cluster.
const etcdLease = 2 * time.Second

// onEtcd are the settings of a server on an etcd cluster, with one coordinator.
func onEtcd(endpoints ...string) []string {
	return []string{"metadataStoreUrl=etcd:" + strings.Join(endpoints, ","), "initialNumTransactionCoordinators=1", "coordinatorLeaseSeconds=2"}
}

// onEveryStore runs a test on a server with its own store and on one that uses an etcd cluster.
func onEveryStore(t *testing.T, test func(*testing.T, *fixture), set ...string) {
	t.Run("embedded", func(t *testing.T) { test(t, newFixture(t, set...)) })
	t.Run("etcd", func(t *testing.T) {
		cluster := etcdprocess.New(t, etcdprocess.Options{})
		f := newStopped(t, binaries.Ordinary(t), append(onEtcd(cluster.Endpoints()...), set...)...)
		f.resume()
		test(t, f)
	})
}

// resume starts the server and waits until its coordinators serve: one that was killed keeps them for a lease.
func (f *fixture) resume() {
	f.Helper()
	f.Start()
	f.await("the coordinators serve", func() bool {
		all := f.health().Coordinators
		return len(all) > 0 && !slices.ContainsFunc(all, func(c admin.Coordinator) bool { return !c.Serving })
	})
}
