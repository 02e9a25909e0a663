package server

import (
	"context"
	"log/slog"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	pulsaradmin "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
)

// officialClient returns the stock Go client, which closes before the server stops: its Close waits for reconnects.
func officialClient(t *testing.T, s *Server) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: s.ServiceURL(), Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// adminClient returns the stock admin client.
func adminClient(t *testing.T, s *Server) pulsaradmin.Client {
	t.Helper()
	client, err := pulsaradmin.New(&config.Config{WebServiceURL: s.WebURL()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// dialTC returns a raw connection to coordinator 0.
func dialTC(ctx context.Context, t *testing.T, s *Server) *wireclient.Conn {
	t.Helper()
	client, err := wireclient.DialTC(ctx, s.ServiceURL(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	return client
}

// dial returns a raw client of topics and of coordinator 0.
func dial(ctx context.Context, t *testing.T, s *Server) *wiretopic.Client {
	t.Helper()
	address, err := wireclient.Address(s.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	client, err := wiretopic.DialTC(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	return client
}
