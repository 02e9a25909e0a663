package etcdtest

import (
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
)

// Server is an etcd cluster of one member with a port on loopback, as others would run it.
type Server struct {
	// Endpoint is the URL that clients use. It stays the same over restarts.
	Endpoint string

	config embed.Config
	etcd   *embed.Etcd
}

// Serve starts a member in a directory of its own and stops it with the test. change, which may be nil, edits its
// configuration; a scheme https makes the listener serve TLS with cfg.ClientTLSInfo.
func Serve(t testing.TB, scheme string, change func(*embed.Config)) *Server {
	t.Helper()
	peer := url.URL{Scheme: "unix", Host: "etcdtest:0"}
	cfg := embed.NewConfig()
	cfg.Name = "etcdtest"
	cfg.Dir = t.TempDir()
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	// Members of the same name at the same address would otherwise be taken for one cluster.
	cfg.InitialClusterToken = cfg.Dir
	cfg.ListenClientUrls = []url.URL{{Scheme: scheme, Host: loopback.Address(t)}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.TickMs, cfg.ElectionMs = 20, 100
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.LogLevel = "fatal"
	cfg.EnableGRPCGateway = false
	cfg.BcryptCost = 4 // the least: passwords of tests are no secrets
	if change != nil {
		change(cfg)
	}
	s := &Server{Endpoint: cfg.ListenClientUrls[0].String(), config: *cfg}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start runs the member, again after Stop.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	cfg := s.config
	etcd, err := embed.StartEtcd(&cfg)
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	s.etcd = etcd
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		t.Fatal("etcd is not ready")
	}
}

// Stop ends the member. Its data stay.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Close()
	}
	s.etcd = nil
}

// Dir is where the data are.
func (s *Server) Dir() string { return s.config.Dir }

// Client connects to the member without credentials. It is closed with the test.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("connect to etcd: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close client of etcd: %v", err)
		}
	})
	return client
}
