package etcdstore

import (
	"testing"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The bytes in use are those of the member with the most, whichever is asked last: one that lags has fewer.
func TestLiveBytesOfACluster(t *testing.T) {
	member := func(live int64) answer {
		return answer{status: &clientv3.StatusResponse{Header: &etcdserverpb.ResponseHeader{}, DbSizeInUse: live}}
	}
	for _, members := range [][]answer{{member(100), member(50)}, {member(50), member(100)}} {
		room := newClusterRoom(1<<20, zerolog.Nop())
		room.see(members, 0)
		if got := room.live.Load(); got != 100 {
			t.Errorf("%d bytes in use, want 100", got)
		}
	}
}
