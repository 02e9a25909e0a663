package etcdstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// backendLockTime is how long another process that has the file is waited for. None has, because the directory is locked.
const backendLockTime = time.Second

// checkBackend refuses a file of etcd that is shorter than what it says of itself: etcd would map it into memory and be killed at the
// first page that is missing. A file that does not exist, or has nothing in it, is made anew.
func (d directory) checkBackend() error {
	path := filepath.Join(d.etcd(), "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: backendLockTime})
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	var want int64
	err = db.View(func(tx *bbolt.Tx) error {
		want = tx.Size()
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	if info.Size() < want {
		return fmt.Errorf("%s is damaged or not whole: it has %d of %d bytes", path, info.Size(), want)
	}
	return nil
}
