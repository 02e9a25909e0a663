package etcdstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

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

// tellsInTurn says one thing at each look, nil for nothing.
type tellsInTurn struct {
	clientv3.Maintenance
	said []*clientv3.StatusResponse
}

func (m *tellsInTurn) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	next := m.said[0]
	m.said = m.said[1:]
	if next == nil {
		return nil, errors.New("it does not answer")
	}
	return next, nil
}

// FC-48: a start goes on waiting for room when its members answer nobody, as they do while an operator defragments them.
func TestWaitForRoomOutlivesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := says(1, 1, 1)
		locked.Errors = []string{"memberID:1 alarm:NOSPACE"}
		l := newLooks(t, map[string]*clientv3.StatusResponse{"http://one:2379": locked})
		members := &tellsInTurn{said: []*clientv3.StatusResponse{nil, nil, locked, nil, says(1, 1, 1)}}
		l.client.Maintenance = members
		c := &cluster{endpoints: l.endpoints, room: newClusterRoom(1<<20, zerolog.Nop())}
		if err := c.awaitRoom(t.Context(), t.Context(), []answer{{endpoint: "http://one:2379", status: locked}}); err != nil {
			t.Error(err)
		}
		if len(members.said) != 0 {
			t.Errorf("it did not wait for the last %d looks", len(members.said))
		}
	})
}
