package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
)

// etcdLease is coordinatorLeaseSeconds of servers on an etcd cluster: what an etcd that is slow for some seconds does not cost.
const etcdLease = 6 * time.Second

// onEtcd are the settings of a server on an etcd cluster, with one coordinator.
func onEtcd(endpoints ...string) []string {
	return []string{
		"metadataStoreUrl=etcd:" + strings.Join(endpoints, ","), "initialNumTransactionCoordinators=1",
		fmt.Sprint("coordinatorLeaseSeconds=", int(etcdLease/time.Second)),
	}
}

// storeVariable is the environment variable that makes every test run on an etcd cluster: "etcd".
const storeVariable = "FAULTS_STORE"

// onItsOwn tells a setting with which a test keeps the store that it has: one that names a store, and authentication, with which
// processes that share an etcd need credentials of their own.
func onItsOwn(setting string) bool {
	return strings.HasPrefix(setting, "metadataStoreUrl=") || setting == "authenticationEnabled=true"
}

// in is the fixture for a test within its test.
func (f *fixture) in(t *testing.T) *fixture {
	inner := *f
	inner.T = t
	return &inner
}

// onEveryStore runs a test on a server with its own store and on one that uses an etcd cluster.
func onEveryStore(t *testing.T, test func(*testing.T, *fixture), set ...string) {
	t.Run("embedded", func(t *testing.T) { test(t, newFixture(t, set...)) })
	t.Run("etcd", func(t *testing.T) {
		cluster := etcdprocess.New(t, etcdprocess.Options{})
		f := newStopped(t, binaries.Ordinary(t), append(onEtcd(cluster.Endpoints()...), set...)...)
		f.Start()
		test(t, f)
	})
}

// Start starts the server. One on an etcd cluster is ready before its coordinators serve: one that was killed keeps them for a
// lease. So Start waits for them.
func (f *fixture) Start(environ ...string) {
	f.Helper()
	f.Instance.Start(environ...)
	onEtcd := slices.ContainsFunc(f.Options.Set, func(set string) bool { return strings.HasPrefix(set, "metadataStoreUrl=etcd:") })
	if !onEtcd || slices.Contains(f.Options.Set, "transactionCoordinatorEnabled=false") {
		return
	}
	f.await("the coordinators serve", func() bool {
		all := f.health().Coordinators
		return len(all) > 0 && !slices.ContainsFunc(all, func(c admin.Coordinator) bool { return !c.Serving })
	})
}
