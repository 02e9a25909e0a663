package etcdstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// saying is the members that say something of themselves.
type saying struct {
	clientv3.Maintenance
	members map[string]*clientv3.StatusResponse
}

func (s *saying) Status(_ context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	return s.members[endpoint], nil
}

// A member that still learns refuses what it is asked: it is given no requests until it is promoted, at the start and later.
func TestLearnerIsLeftOut(t *testing.T) {
	all := []string{"http://voter:2379", "http://learner:2379"}
	client, err := clientv3.New(clientv3.Config{Endpoints: all})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	header := &etcdserverpb.ResponseHeader{ClusterId: 1}
	said := &saying{members: map[string]*clientv3.StatusResponse{
		all[0]: {Header: header, Leader: 1}, all[1]: {Header: header, Leader: 1, IsLearner: true},
	}}
	client.Maintenance = said
	e := &endpoints{all: all, client: client, log: zerolog.Nop(), misses: map[string]int{}}
	answers, err := e.meet(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	look := func() { answers = e.judge(t.Context(), e.ask(t.Context(), time.Second)) }
	if got := client.Endpoints(); !slices.Equal(got, all[:1]) {
		t.Errorf("requests go to %v", got)
	}
	said.members[all[1]] = said.members[all[0]]
	look()
	if got := client.Endpoints(); !slices.Equal(got, all) || len(answers) != 2 {
		t.Errorf("promoted: requests go to %v", got)
	}
	said.members[all[1]] = &clientv3.StatusResponse{Header: header, Leader: 1, IsLearner: true}
	for range mostMisses {
		look()
	}
	if got := client.Endpoints(); !slices.Equal(got, all[:1]) {
		t.Errorf("replaced: requests go to %v", got)
	}
	why := absence(e.ask(t.Context(), time.Second)[1:], nil)
	if why == nil || !strings.Contains(*why, "learner") {
		t.Errorf("away: %v", why)
	}
}
