package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// begin opens n transactions on a server of its own over options and returns the last id.
func begin(t *testing.T, options Options, n int) txn.ID {
	t.Helper()
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := dialTC(ctx, t, s)
	var id txn.ID
	for range n {
		if id, err = client.Begin(ctx, 0, 60_000, ""); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func backup(t *testing.T, options Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(dir, os.DirFS(options.Config.DataDir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Promise 5: ids that were handed out after the backup are not handed out again.
func TestRestoreGoesOnWithIDs(t *testing.T) {
	original := load(t)
	begin(t, original, 1)
	saved := backup(t, original)
	later := begin(t, original, 100)

	restored := load(t)
	if err := Restore(t.Context(), restored, saved, 0); err != nil {
		t.Fatal(err)
	}
	onlyForOwner(t, filepath.Join(restored.Config.DataDir, storeDir))
	if id := begin(t, restored, 1); id.Least <= later.Least {
		t.Errorf("id %v after the restore, %v was handed out before it", id, later)
	}
	if err := Restore(t.Context(), restored, saved, 0); err == nil {
		t.Error("a data directory that holds a store was restored into")
	}
	if err := Restore(t.Context(), load(t), t.TempDir(), 0); err == nil {
		t.Error("an empty directory was taken for a backup")
	}
}

// onlyForOwner checks that no other user of the machine can read anything in dir.
func onlyForOwner(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Promise 5: where the clock does not vouch for new ids an operator has to.
func TestRestoreWithAClockThatIsBehind(t *testing.T) {
	original := load(t)
	begin(t, original, 1)
	ahead := uint64(time.Now().Add(time.Hour).Unix()) << 20
	setNext(t, original, ahead)
	saved := backup(t, original)

	restored := load(t)
	err := Restore(t.Context(), restored, saved, 0)
	var behind *ClockBehindError
	if !errors.As(err, &behind) || behind.Behind < 50*time.Minute {
		t.Fatalf("restore without a floor: %v", err)
	}
	if err := Restore(t.Context(), restored, saved, ahead-1); err == nil {
		t.Error("a floor below the ids of the backup was taken")
	}
	floor := ahead + 12345
	if err := Restore(t.Context(), restored, saved, floor); err != nil {
		t.Fatal(err)
	}
	if id := begin(t, restored, 1); id.Least < floor {
		t.Errorf("id %d, the floor is %d", id.Least, floor)
	}
}

func setNext(t *testing.T, options Options, next uint64) {
	t.Helper()
	store, err := etcdstore.Open(t.Context(), options.store(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Client().Put(t.Context(), options.space().Next(0), strconv.FormatUint(next, 10)); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// A directory without etcd's log is no backup: a new store in its place would look as if everything had been restored.
func TestRestoreRefusesAnEmptyBackup(t *testing.T) {
	saved, options := t.TempDir(), load(t)
	if err := os.Mkdir(filepath.Join(saved, storeDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), options, saved, 0); err == nil {
		t.Error("restored from nothing")
	}
	if _, err := os.Stat(filepath.Join(options.Config.DataDir, storeDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left behind: %v", err)
	}
}

// A floor above what an id may be would leave no ids to hand out.
func TestRestoreRefusesAFloorBeyondAllIDs(t *testing.T) {
	original := load(t)
	begin(t, original, 1)
	saved := backup(t, original)
	for _, floor := range []uint64{1 << 53, 1<<64 - 1} {
		if err := Restore(t.Context(), load(t), saved, floor); err == nil {
			t.Errorf("--id-floor %d is taken", floor)
		}
	}
}

// A restore that was killed left part of a store, which etcd would take for a whole one with ids of the past: no server starts there
// until the restore is run again.
func TestRestoreThatWasKilled(t *testing.T) {
	original := load(t)
	begin(t, original, 1)
	saved, killed := backup(t, original), load(t)
	if err := errors.Join(os.MkdirAll(killed.Config.DataDir, 0o700), killed.beginRestore()); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(storeDir, "member", "snap")
	if err := os.CopyFS(filepath.Join(killed.Config.DataDir, part), os.DirFS(filepath.Join(saved, part))); err != nil {
		t.Fatal(err)
	}
	if s, err := Start(t.Context(), killed); err == nil {
		stop(t, s)
		t.Fatal("started from a part of a backup")
	}
	if err := Restore(t.Context(), killed, saved, 0); err != nil {
		t.Fatal(err)
	}
	begin(t, killed, 1)
}

// A restore touches nothing in a data directory that another process has: what is there may be what another restore is copying, or
// the store of a server that has just begun it.
func TestRestoreIntoADirectoryInUse(t *testing.T) {
	original := load(t)
	begin(t, original, 1)
	saved, options := backup(t, original), load(t)
	lock, err := etcdstore.LockDir(options.Config.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(options.Config.DataDir, storeDir, "copied")
	if err := errors.Join(options.beginRestore(), os.MkdirAll(copied, 0o700)); err != nil {
		t.Fatal(err)
	}
	var inUse *etcdstore.InUseError
	if err := Restore(t.Context(), options, saved, 0); !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Errorf("restore beside another one: %v", err)
	}
	if _, err := os.Stat(copied); err != nil {
		t.Errorf("what another restore copies: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), options, saved, 0); err != nil {
		t.Fatal(err)
	}
	begin(t, options, 1)
}
