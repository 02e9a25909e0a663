package etcdprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Save writes a snapshot of the leader's data to a new file, as an operator's backup does.
func (c *Cluster) Save(ctx context.Context, path string) (err error) {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	client, err := leader.Client()
	if err != nil {
		return err
	}
	stream, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, stream.Snapshot.Close()) }()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	_, err = io.Copy(file, stream.Snapshot)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	return nil
}

// Restore ends all members, forgets what they stored, and starts them on the data of a snapshot: a new cluster at the same
// addresses. Revisions go on where the snapshot ended, so that some are given a second time.
func (c *Cluster) Restore(ctx context.Context, path string) error {
	for _, m := range c.Members {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	if err := c.removeData(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, m := range c.Members {
		err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: path, Name: m.Name, OutputDataDir: c.directory(m), PeerURLs: []string{m.peerURL()},
			InitialCluster: c.initial(), InitialClusterToken: c.options.Dir,
		})
		if err != nil {
			return fmt.Errorf("restore %s: %w", m.Name, err)
		}
	}
	return c.start(ctx)
}
