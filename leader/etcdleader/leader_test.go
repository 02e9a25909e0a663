package etcdleader_test

import (
	"context"
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

func TestContract(t *testing.T) {
	leadertest.Run(t, func(t testing.TB) leadertest.Election {
		store := etcdtest.Open(t, nil)
		return leadertest.Election{
			Contender: func(t testing.TB) leadertest.Contender {
				leader := contender(t, store, etcdleader.Options{Lease: 2 * time.Second})
				return func(ctx context.Context, tc uint64) (leadertest.Term, error) {
					term, err := leader.Win(ctx, tc)
					if err != nil {
						return nil, err
					}
					return term, nil
				}
			},
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
