package etcdstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// directory is the layout of a data directory.
type directory string

func (d directory) lock() string { return filepath.Join(string(d), "lock") }
func (d directory) etcd() string { return filepath.Join(string(d), "etcd") }
func (d directory) wal() string  { return filepath.Join(d.etcd(), "member", "wal") }

// prepare makes sure that the directory exists and takes new files.
func (d directory) prepare() error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	info, err := os.Stat(string(d))
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("data directory %s is not a directory", string(d))
	}
	if err := unix.Access(string(d), unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("data directory %s is not writable: %w", string(d), err)
	}
	return nil
}

// prepareEtcd makes etcd's part private to the owner, whatever the mode of the directory around it.
func (d directory) prepareEtcd() error {
	err := os.Mkdir(d.etcd(), 0o700)
	if errors.Is(err, os.ErrExist) {
		err = os.Chmod(d.etcd(), 0o700)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// freeBytes is what an unprivileged process may still write to the file system of dir.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	if stat.Bsize <= 0 {
		return 0, fmt.Errorf("free space of %s: block size %d", dir, stat.Bsize)
	}
	blocks, size := uint64(stat.Bavail), uint64(stat.Bsize)
	if blocks > largestQuota/size {
		return largestQuota, nil
	}
	return int64(blocks * size), nil
}
