package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	memberName = "pulsar-tc"
	// A single member needs no patience with others: it elects itself after at most one election timeout.
	tick            = 20 * time.Millisecond
	electionTimeout = 100 * time.Millisecond
	// snapshotCount bounds the entries that a start reads from the write-ahead log; raftLog bounds their bytes.
	snapshotCount = 300
	// catchUpEntries are kept in memory for members that lag behind; there are none. etcd takes 0 for its default of 5000.
	catchUpEntries = 1
	// keptFiles bounds old write-ahead log segments, of 64 MB each, and raft snapshots.
	keptFiles = 2
	// slowRequest is how long a request may take before etcd warns. Groups of thousands of operations are no reason.
	slowRequest = time.Second
)

// memberConfig is the configuration of a member that is alone and listens nowhere.
func memberConfig(dir string, o Options, log zerolog.Logger, failed *failure) *embed.Config {
	peer := url.URL{Scheme: "unix", Host: memberName + ":0"}
	cfg := embed.NewConfig()
	cfg.Name = memberName
	cfg.Dir = dir
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.AdvertiseClientUrls = nil
	cfg.InitialCluster = memberName + "=" + peer.String()
	cfg.EnableGRPCGateway = false
	cfg.TickMs = uint(tick / time.Millisecond)
	cfg.ElectionMs = uint(electionTimeout / time.Millisecond)
	cfg.PreVote = false
	cfg.SnapshotCount = snapshotCount
	cfg.SnapshotCatchUpEntries = catchUpEntries
	cfg.MaxSnapFiles = keptFiles
	cfg.MaxWalFiles = keptFiles
	cfg.MaxTxnOps = uint(o.MaxTxnOps)
	cfg.MaxRequestBytes = uint(o.MaxRequestBytes())
	// etcd's own quota counts the file, free pages included, and locks the whole store when it is reached, ends of
	// transactions too. Space counts live bytes and locks what can wait.
	cfg.QuotaBackendBytes = -1
	cfg.AutoCompactionRetention = "0"
	cfg.CompactionBatchLimit = compactionBatch(o.QuotaBytes)
	cfg.WarningApplyDuration = slowRequest
	cfg.WarningUnaryRequestDuration = slowRequest
	cfg.LogLevel = "warn"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newZap(log, failed))
	return cfg
}

// startMember starts a server and waits until it serves. A server that fails while starting is reported through failed.
func startMember(ctx context.Context, cfg *embed.Config, failed *failure) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(cfg)
		started <- result{server, err}
	}()
	var server *embed.Etcd
	select {
	case r := <-started:
		if r.err != nil {
			return nil, fmt.Errorf("start etcd: %w", r.err)
		}
		server = r.server
	case <-failed.happened:
		return nil, fmt.Errorf("start etcd: %w", failed.get())
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case <-failed.happened:
		return nil, fmt.Errorf("start etcd: %w", failed.get())
	case <-server.Server.StopNotify():
		server.Close()
		return nil, errors.New("start etcd: the server stopped")
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
}
