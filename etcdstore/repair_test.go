package etcdstore

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// slowMember is defragmented until it is let go.
type slowMember struct {
	fakeCompactor
	defragmenting, letGo chan struct{}
	alarms               []*etcdserverpb.AlarmMember
	disarmed             []etcdserverpb.AlarmType
}

func (m *slowMember) defragment(context.Context, string) error {
	m.defragmenting <- struct{}{}
	<-m.letGo
	return nil
}

func (m *slowMember) AlarmList(context.Context) (*clientv3.AlarmResponse, error) {
	return &clientv3.AlarmResponse{Alarms: m.alarms}, nil
}

func (m *slowMember) AlarmDisarm(_ context.Context, member *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	m.disarmed = append(m.disarmed, member.Alarm)
	return &clientv3.AlarmResponse{}, nil
}

// etcdManageStore: the members are looked at while one is defragmented, one repair goes on at a time, and an alarm that says something
// else than a lack of space stays.
func TestRepairGoesOnBesideTheLooks(t *testing.T) {
	client := &slowMember{
		defragmenting: make(chan struct{}), letGo: make(chan struct{}),
		alarms: []*etcdserverpb.AlarmMember{
			{MemberID: 1, Alarm: etcdserverpb.AlarmType_NOSPACE}, {MemberID: 2, Alarm: etcdserverpb.AlarmType_CORRUPT},
		},
	}
	r := &repairs{client: client, defragment: client.defragment, revision: func() int64 { return 7 }, log: zerolog.Nop()}
	full := []answer{{endpoint: "member", status: &clientv3.StatusResponse{Errors: []string{"memberID:1 alarm:NOSPACE"}}}}
	now := time.Unix(0, 0)
	see := func() { r.see(t.Context(), now, full); now = now.Add(repairInterval) }
	see() // another process may come first
	see()
	<-client.defragmenting
	see()
	if got := len(client.revs); got != 1 {
		t.Errorf("%d compactions while one repair goes on", got)
	}
	close(client.letGo)
	r.tasks.Wait()
	if len(client.disarmed) != 1 || client.disarmed[0] != etcdserverpb.AlarmType_NOSPACE {
		t.Errorf("disarmed %v, want NOSPACE alone", client.disarmed)
	}
	see()
	<-client.defragmenting
	r.tasks.Wait()
	if got := len(client.revs); got != 2 {
		t.Errorf("%d compactions, want the alarm that came back repaired", got)
	}
}

// slowServer is a member that is defragmented until it is let go.
type slowServer struct {
	etcdserverpb.UnimplementedMaintenanceServer
	defragmenting, letGo chan struct{}
}

func (s *slowServer) Defragment(context.Context, *etcdserverpb.DefragmentRequest) (*etcdserverpb.DefragmentResponse, error) {
	close(s.defragmenting)
	<-s.letGo
	return &etcdserverpb.DefragmentResponse{}, nil
}

// etcdManageStore: what waits for a member that is defragmented is given up, but not the defragmentation.
func TestRepairIsSpared(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, member := grpc.NewServer(), &slowServer{defragmenting: make(chan struct{}), letGo: make(chan struct{})}
	etcdserverpb.RegisterMaintenanceServer(server, member)
	go server.Serve(listener)
	defer server.Stop()
	endpoint := "http://" + listener.Addr().String()
	c := &cluster{endpoints: newEndpoints([]string{endpoint}, nil, zerolog.Nop())}
	done := make(chan error, 1)
	go func() { done <- c.defragmenter(ClusterOptions{}.withDefaults())(t.Context(), endpoint) }()
	<-member.defragmenting
	c.endpoints.connections.cut([]string{endpoint}, nil)
	close(member.letGo)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
