package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

func load(t *testing.T, set ...string) Options {
	t.Helper()
	base := []string{"dataDir=" + t.TempDir(), "brokerServicePort=0", "webServicePort=0"}
	config, _, err := conf.Load(conf.Sources{Set: append(base, set...)})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: config, Version: "test", Log: zerolog.Nop()}
}

func start(t *testing.T, options Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	stopWithin(t, s, handOverGrace+patience)
}

func stopWithin(t *testing.T, s *Server, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestHealthAndMetrics(t *testing.T) {
	s := start(t, load(t, "initialNumTransactionCoordinators=3"))
	code, body := get(t, s.WebURL()+"/health")
	var health admin.Health
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatal(err)
	}
	if code != http.StatusOK || !health.Healthy || len(health.Coordinators) != 3 || health.Store != "normal" {
		t.Errorf("health %d: %+v", code, health)
	}
	code, body = get(t, s.WebURL()+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil || code != http.StatusOK {
		t.Fatalf("metrics %d: %v", code, err)
	}
	if active := families["pulsar_txn_active_count"]; active == nil || len(active.GetMetric()) != 3 {
		t.Errorf("pulsar_txn_active_count: %v", active)
	}
}

// FC-11: with transactions off every transaction command gets a definite refusal on a connection that stays open.
func TestTransactionsOff(t *testing.T) {
	s := start(t, load(t, "transactionCoordinatorEnabled=false"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addr, err := wireclient.Address(s.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	client, err := wireclient.Dial(ctx, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 {
		_, err = client.Begin(ctx, 0, 1000, "")
		var refusal *wireclient.ServerError
		if !errors.As(err, &refusal) || refusal.Code != pulsarproto.ServerError_NotAllowedError {
			t.Errorf("NEW_TXN: %v, want NotAllowedError", err)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	used := load(t)
	running := start(t, used)

	again := used
	_, err := Start(t.Context(), again)
	var inUse *etcdstore.InUseError
	if !errors.As(err, &inUse) {
		t.Errorf("a data directory in use: %v", err)
	}

	_, port, err := net.SplitHostPort(strings.TrimPrefix(running.ServiceURL(), "pulsar://"))
	if err != nil {
		t.Fatal(err)
	}
	taken := load(t, "brokerServicePort="+port)
	if _, err := Start(t.Context(), taken); err == nil || !strings.Contains(err.Error(), "brokerServicePort="+port) {
		t.Errorf("a port in use: %v", err)
	}

	many := load(t, "allowAutoTopicCreationType=partitioned", "defaultNumPartitions=5000")
	if s, err := Start(t.Context(), many); err == nil || !strings.Contains(err.Error(), "defaultNumPartitions=5000") {
		t.Errorf("more partitions than any topic may have: %v", err)
		stop(t, s)
	}
}

// A server that was closed leaves its data directory to the next one, and ids go on (promise 5).
func TestRestartInOneProcess(t *testing.T) {
	options := load(t)
	var last uint64
	for range 3 {
		s, err := Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		client := dialTC(ctx, t, s)
		id, err := client.Begin(ctx, 0, 60_000, "")
		if err != nil {
			t.Fatal(err)
		}
		if id.Least <= last {
			t.Errorf("id %d after %d", id.Least, last)
		}
		last = id.Least
		cancel()
		stop(t, s)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A lease that nobody waits for outlasts a machine that stands still for a while.
func TestLeaseOutlastsAStandstill(t *testing.T) {
	s := start(t, load(t))
	key, err := s.store.Client().Get(t.Context(), s.options.space().Leader(0))
	if err != nil || len(key.Kvs) != 1 {
		t.Fatalf("leader key: %v, %v", key, err)
	}
	lease, err := s.store.Client().TimeToLive(t.Context(), clientv3.LeaseID(key.Kvs[0].Lease))
	if err != nil || lease.GrantedTTL != 60 {
		t.Errorf("lease: %+v, %v, want 60 s", lease, err)
	}
}
