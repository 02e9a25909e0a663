package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/server"
)

// local is a whole server in this process.
type local struct {
	*server.Server
	recording
}

// startLocal starts a server on the data directory dir. set are settings, key=value.
func startLocal(ctx context.Context, dir string, set []string) (*local, error) {
	all := append([]string{"dataDir=" + dir, "brokerServicePort=0", "webServicePort=0"}, set...)
	config, _, err := conf.Load(conf.Sources{Set: all})
	if err != nil {
		return nil, err
	}
	l := &local{}
	l.Server, err = server.Start(ctx, server.Options{Config: config, Version: "bench", Log: zerolog.Nop(), WrapKV: l.wrap})
	return l, err
}

func (l *local) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return l.Server.Close(ctx)
}

// runLocal runs f beside a server of this process on dir, connected to its only coordinator.
func runLocal(ctx context.Context, dir string, set []string, f func(*local, *wireclient.Conn) error) error {
	l, err := startLocal(ctx, dir, set)
	if err != nil {
		return err
	}
	return errors.Join(connected(ctx, l.ServiceURL(), func(c *wireclient.Conn) error { return f(l, c) }), l.close())
}

// withLocal is runLocal on a directory of its own.
func withLocal(ctx context.Context, set []string, f func(*local, *wireclient.Conn) error) error {
	return inDirectory(func(dir string) error { return runLocal(ctx, dir, set, f) })
}

// inDirectory runs f with an empty directory that is removed afterwards.
func inDirectory(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "pulsar-tc-bench-")
	if err != nil {
		return err
	}
	return errors.Join(f(dir), os.RemoveAll(dir))
}

func connected(ctx context.Context, serviceURL string, f func(*wireclient.Conn) error) error {
	c, err := wireclient.DialTC(ctx, serviceURL, 0)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// heap is the bytes of live objects, of everything in this process.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers of the first let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// liveKeys is the number of keys in the server's store.
func (l *local) liveKeys(ctx context.Context) (float64, error) {
	response, err := l.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	return float64(response.Count), nil
}
