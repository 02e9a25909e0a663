package etcdstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fakeCompactor keeps what it was asked for.
type fakeCompactor struct {
	mu   sync.Mutex
	revs []int64
	err  error
}

func (f *fakeCompactor) Compact(_ context.Context, rev int64, _ ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revs = append(f.revs, rev)
	return &clientv3.CompactResponse{}, f.err
}

// due reports whether a compaction was asked for since the last time.
func (h *history) isDue() bool {
	select {
	case <-h.due:
		return true
	default:
		return false
	}
}

func TestHistoryIsDueByBytes(t *testing.T) {
	var rev, live int64 = 10, 0
	client := &fakeCompactor{}
	h := newHistory(client, func() int64 { return rev }, func() int64 { return live }, mostLeastHistory, zerolog.Nop())
	h.wrote(mostLeastHistory - 1)
	if h.isDue() {
		t.Fatal("due too early")
	}
	h.wrote(1)
	if !h.isDue() {
		t.Fatal("not due")
	}
	live = gibibyte
	if err := h.compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wrote(gibibyte/2 - 1)
	if h.isDue() {
		t.Fatal("due before half of the live bytes")
	}
	h.wrote(1)
	if !h.isDue() {
		t.Fatal("not due at half of the live bytes")
	}
}

func TestHistoryStopsAtPins(t *testing.T) {
	rev := int64(10)
	client := &fakeCompactor{}
	h := newHistory(client, func() int64 { return rev }, func() int64 { return 0 }, mostLeastHistory, zerolog.Nop())
	compact := func() {
		t.Helper()
		if err := h.compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	releaseEight, releaseNine := h.pin(8), h.pin(9)
	compact()
	releaseEight()
	compact()
	compact() // nothing newer
	releaseNine()
	client.err = rpctypes.ErrCompacted // somebody else was there
	compact()
	rev = 11
	client.err = errors.New("no answer")
	if err := h.compact(t.Context()); err == nil {
		t.Error("an error was swallowed")
	}
	want := []int64{8, 9, 10, 11}
	if len(client.revs) != len(want) {
		t.Fatalf("compacted to %v, want %v", client.revs, want)
	}
	for i := range want {
		if client.revs[i] != want[i] {
			t.Fatalf("compacted to %v, want %v", client.revs, want)
		}
	}
}

func TestHistoryOfAStore(t *testing.T) {
	store := openStore(t, Options{})
	old := put(t, store, "key", "1")
	put(t, store, "key", "2")
	pinned := put(t, store, "key", "3")
	release := store.Pin(pinned)
	put(t, store, "key", "4")
	readable := func(rev int64) bool {
		_, err := store.Client().Get(t.Context(), "key", clientv3.WithRev(rev))
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		return err == nil
	}
	store.Wrote(mostLeastHistory)
	eventually(t, "old revision compacted", func() bool { return !readable(old) })
	if !readable(pinned) {
		t.Fatal("a pinned revision was compacted")
	}
	release()
	store.Wrote(mostLeastHistory)
	eventually(t, "released revision compacted", func() bool { return !readable(pinned) })
}

// Large requests are behind raft's snapshot, and out of memory, long before snapshotCount of them.
func TestRaftLogIsCutByBytes(t *testing.T) {
	store := openStore(t, Options{})
	server := inside(store).server.Server
	rev := put(t, store, "key", "value")
	applied := server.AppliedIndex()
	store.Wrote(raftWindow)
	eventually(t, "raft log filled", func() bool { return server.AppliedIndex() > applied+snapshotCount-1 })
	if got := server.KV().Rev(); got != rev {
		t.Errorf("revision %d after %d: filling must change nothing", got, rev)
	}
}

func TestFreeBytes(t *testing.T) {
	if free, err := freeBytes(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("%d, %v", free, err)
	}
	if _, err := freeBytes("/does/not/exist"); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

// FC-48: a store that was locked for lack of space is repaired before it is used.
func TestNoSpaceAlarmAtStart(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, Options{Dir: dir})
	for range 10 {
		put(t, store, "key", strings.Repeat("x", 4*mebibyte))
	}
	server := inside(store).server.Server
	_, err := server.Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		MemberID: uint64(server.MemberID()), Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Client().Put(t.Context(), "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("%v, want the alarm to lock the store", err)
	}
	closeStore(t, store)
	before := backendSize(t, dir)

	store = openStore(t, Options{Dir: dir})
	put(t, store, "key", "value")
	closeStore(t, store)
	if after := backendSize(t, dir); after >= before {
		t.Errorf("%d bytes after the repair, %d before", after, before)
	}
}

func backendSize(t testing.TB, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "etcd", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
