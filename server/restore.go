package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// storeDir is where etcd's files are in a data directory and in a backup of one.
const storeDir = "etcd"

// logFiles are etcd's log in there. Without it etcd begins a store that is empty.
var logFiles = filepath.Join("member", "wal", "*.wal")

// maxIDFloor keeps ids below 2^53 for hundreds of millions of transactions; the clock gets there in the year 2242.
const maxIDFloor = 1<<53 - 1<<30

// ClockBehindError says that the clock does not vouch for new ids after a restore.
type ClockBehindError struct {
	TC     uint64
	Behind time.Duration
}

func (e *ClockBehindError) Error() string {
	return fmt.Sprintf("the clock is %s behind the ids that coordinator %d had used at the time of the backup: correct the clock, or give "+
		"--id-floor, a number above every id handed out since", e.Behind.Round(time.Second), e.TC)
}

// Restore copies a backup into the data directory, which must not hold a store yet, and makes sure that ids go on above those
// handed out since the backup (promise 5): by the clock, or from idFloor if that is not 0. It leaves no store behind if it fails;
// if it is killed no server starts there until it is run again. Errors: *etcdstore.InUseError, *ClockBehindError.
func Restore(ctx context.Context, options Options, backup string, idFloor uint64) (err error) {
	if options.External() {
		return errors.New("metadataStoreUrl names an etcd cluster: restore that with etcd's own tools, while no process uses it")
	}
	from, to := filepath.Join(backup, storeDir), filepath.Join(options.Config.DataDir, storeDir)
	if log, err := filepath.Glob(filepath.Join(from, logFiles)); err != nil || len(log) == 0 {
		return fmt.Errorf("backup %s is not a copy of a data directory: it has no %s", backup, filepath.Join(storeDir, logFiles))
	}
	if idFloor > maxIDFloor {
		return fmt.Errorf("--id-floor %d: want at most %d, which leaves ids to hand out", idFloor, uint64(maxIDFloor))
	}
	lock, err := etcdstore.LockDir(options.Config.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if options.unfinishedRestore() != nil {
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("remove what an unfinished restore left: %w", err)
		}
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s holds a store already; restore into an empty one", options.Config.DataDir)
	}
	if err := options.beginRestore(); err != nil {
		return fmt.Errorf("begin the restore: %w", err)
	}
	defer func() {
		if err != nil {
			if left := os.RemoveAll(to); left != nil {
				err = errors.Join(err, left)
				return // the next restore removes the rest; until then no server starts here
			}
		}
		err = errors.Join(err, os.Remove(options.restoring()))
	}()
	if err := copyPrivately(to, from); err != nil {
		return fmt.Errorf("copy the backup: %w", err)
	}
	restored := options.store()
	restored.Lock = lock
	store, err := etcdstore.Open(ctx, restored, options.Log)
	if err != nil {
		return fmt.Errorf("open the restored store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for tc := range store.Coordinators() {
		if err := raiseIDs(ctx, store.Client(), options.space(), tc, idFloor); err != nil {
			return err
		}
	}
	return nil
}

// restoring is a file that is in the data directory while a restore is under way: what is there is no store yet, and its ids are not
// raised.
func (o *Options) restoring() string { return filepath.Join(o.Config.DataDir, "restoring") }

func (o *Options) beginRestore() error {
	return os.WriteFile(o.restoring(), nil, 0o600)
}

// unfinishedRestore refuses a data directory into which a restore was begun and not finished.
func (o *Options) unfinishedRestore() error {
	if _, err := os.Stat(o.restoring()); err != nil {
		return nil
	}
	return fmt.Errorf("a restore into data directory %s did not finish: run it again", o.Config.DataDir)
}

// copyPrivately copies a directory so that its owner alone can read the copy, whatever the modes of the backup are.
func copyPrivately(to, from string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if entry.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
}

// restoreMargin keeps the ids after a restore above those handed out in the same second as it.
const restoreMargin = 10 * time.Second

// raiseIDs moves the bound of a coordinator's ids up to floor; without one, to where the clock is, if that is past the bound.
func raiseIDs(ctx context.Context, kv clientv3.KV, space keyspace.Space, tc, floor uint64) error {
	key := space.Next(tc)
	found, err := kv.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	var next uint64
	if len(found.Kvs) > 0 {
		if next, err = strconv.ParseUint(string(found.Kvs[0].Value), 10, 64); err != nil {
			return &txn.CorruptError{Key: key, Reason: err.Error()}
		}
	}
	if floor == 0 {
		now := time.Now()
		behind := time.Duration(fsm.ClockBehind(now.UnixMilli(), next)) * time.Millisecond
		if behind > time.Minute {
			return &ClockBehindError{TC: tc, Behind: behind}
		}
		floor = max(next+1, fsm.FirstID(now.Add(restoreMargin).UnixMilli()))
	}
	if floor <= next {
		return fmt.Errorf("--id-floor %d is not above %d, which coordinator %d had used already at the time of the backup", floor, next, tc)
	}
	if _, err := kv.Put(ctx, key, strconv.FormatUint(floor, 10)); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}
