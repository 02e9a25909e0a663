package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
	"github.com/pulsar-tc/pulsar-tc/txnlog/logtest"
)

// A member that is cut off from its cluster still confirms the fence of a term that ended elsewhere, if it is asked by a
// transaction without operations. Prove is not taken in.
func TestCutOffMember(t *testing.T) {
	cluster := startCluster(t, 3)
	cutOff, others := follower(t, cluster)
	term := win(t, others[0])
	mine := clientOf(t, cutOff)
	log := etcdlog.New(mine, etcdtest.Space, logtest.TC, term.Number(), etcdlog.Options{})
	if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}

	cut(cutOff, others)
	later := win(t, others[0])
	if later.Number() <= term.Number() {
		t.Fatalf("term %d after term %d", later.Number(), term.Number())
	}

	fence, _ := term.Fence()
	believed, err := mine.Txn(t.Context()).If(fence).Commit()
	if err != nil || !believed.Succeeded {
		t.Fatalf("an empty transaction on the cut-off member: %v, %v; this test wants it to be believed", believed, err)
	}
	proven := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return log.Prove(ctx)
	}
	if err := proven(); !isUnknown(err) {
		t.Errorf("proof on the cut-off member: %v, want %v", err, txn.ErrUnknownResult)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := log.Append(soon, batchOf(1)); !isUnknown(err) {
		t.Errorf("append on the cut-off member: %v, want %v", err, txn.ErrUnknownResult)
	}

	mend(cutOff, others)
	deadline := time.Now().Add(30 * time.Second)
	for err = proven(); isUnknown(err) && time.Now().Before(deadline); err = proven() {
	}
	if !isFenced(err) {
		t.Errorf("proof on the mended member: %v, want %v", err, txn.ErrFenced)
	}
}

// win ends the term that another process holds, as its lease would, and begins the next one.
func win(t testing.TB, member *embed.Etcd) *etcdleader.Term {
	t.Helper()
	leader, err := etcdleader.New(clientOf(t, member), etcdtest.Space, etcdleader.Options{Exclusive: true}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leader.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	term, err := leader.Win(ctx, logtest.TC)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func clientOf(t testing.TB, member *embed.Etcd) *clientv3.Client {
	client := v3client.New(member.Server)
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client
}

// startCluster starts members that talk over loopback.
func startCluster(t testing.TB, size int) []*embed.Etcd {
	t.Helper()
	var peers []url.URL
	var initial []string
	for i := range size {
		peers = append(peers, url.URL{Scheme: "http", Host: loopback.Address(t)})
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peers[i].String()))
	}
	var cluster []*embed.Etcd
	for i := range size {
		cfg := embed.NewConfig()
		cfg.Name, cfg.Dir = fmt.Sprintf("m%d", i), t.TempDir()
		cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peers[i:i+1], peers[i:i+1]
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
		cfg.InitialCluster = strings.Join(initial, ",")
		cfg.EnableGRPCGateway = false
		cfg.TickMs, cfg.ElectionMs = 100, 2000
		cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		member, err := embed.StartEtcd(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(member.Close)
		cluster = append(cluster, member)
	}
	for _, member := range cluster {
		select {
		case <-member.Server.ReadyNotify():
		case <-time.After(30 * time.Second):
			t.Fatal("the cluster is not ready")
		}
	}
	return cluster
}

// follower returns a member that does not lead, and the others.
func follower(t testing.TB, cluster []*embed.Etcd) (*embed.Etcd, []*embed.Etcd) {
	t.Helper()
	for i, member := range cluster {
		if member.Server.Leader() != member.Server.MemberID() {
			return member, append(append([]*embed.Etcd(nil), cluster[:i]...), cluster[i+1:]...)
		}
	}
	t.Fatal("every member leads")
	return nil, nil
}

func cut(member *embed.Etcd, others []*embed.Etcd) {
	for _, other := range others {
		member.Server.CutPeer(other.Server.MemberID())
		other.Server.CutPeer(member.Server.MemberID())
	}
}

func mend(member *embed.Etcd, others []*embed.Etcd) {
	for _, other := range others {
		member.Server.MendPeer(other.Server.MemberID())
		other.Server.MendPeer(member.Server.MemberID())
	}
}
