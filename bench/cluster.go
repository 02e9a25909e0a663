package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

const members = 3

// newEndOnCluster is newEndAtOnce on an etcd cluster of three members, processes of this machine. The ceilings have a cluster of
// the same kind, which is idle when it is not its turn.
func newEndOnCluster(ctx context.Context, _ *suite) ([]line, error) {
	var t turns
	err := withCluster(ctx, func(ours *etcdprocess.Cluster) error {
		return withCluster(ctx, func(theirs *etcdprocess.Cluster) error {
			client, err := theirs.Client()
			if err != nil {
				return err
			}
			set := []string{"metadataStoreUrl=etcd:" + strings.Join(ours.Endpoints(), ","), "initialNumTransactionCoordinators=1"}
			return withLocal(ctx, set, func(l *local, c *wireclient.Conn) error {
				bare := newBare(client, func(int) {})
				return t.take(ctx, l, c, bare, bare, int(measuredTime/time.Second))
			})
		})
	})
	if err != nil {
		return nil, err
	}
	a, b := t.ceilings()
	return []line{
		figure("NEW+END on three etcd members, 256 in flight", t.rate(), "txn/s").
			compared(ceiling{"A: its etcd transactions replayed", a}).ratioAtLeast(0.5),
		figure("A on three etcd members", a, "txn/s").compared(ceiling{"B: one put per etcd transaction", b}),
		figure("records in one etcd transaction there", 2*float64(t.count)/float64(t.transactions), "records"),
	}, nil
}

// withCluster runs f beside an etcd cluster of its own.
func withCluster(ctx context.Context, f func(*etcdprocess.Cluster) error) error {
	return inDirectory(func(dir string) error {
		c, err := etcdprocess.Start(ctx, etcdprocess.Options{Members: members, Dir: dir})
		if c == nil {
			return err
		}
		if err == nil {
			err = f(c)
		}
		return errors.Join(err, c.Close())
	})
}
