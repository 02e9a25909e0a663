package etcdstore

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// fakePages are of a backend that has committed so much.
type fakePages struct{ live, size int64 }

func (p *fakePages) SizeInUse() int64 { return p.live }
func (p *fakePages) Size() int64      { return max(p.live, p.size) }

// fakeDisk is a data directory with a write-ahead log, and free bytes.
type fakeDisk struct {
	*disk
	t    *testing.T
	left int64
}

func newFakeDisk(t *testing.T) *fakeDisk {
	f := &fakeDisk{t: t, left: gibibyte}
	f.disk = newDisk(directory(t.TempDir()), leastQuota, func(string) (int64, error) { return f.left, nil })
	return f
}

// hold makes the write-ahead log of n segments and, if ready, the next one.
func (f *fakeDisk) hold(n int, ready bool) {
	f.t.Helper()
	if err := os.RemoveAll(f.dir.wal()); err != nil {
		f.t.Fatal(err)
	}
	for i := range n {
		f.create(strconv.Itoa(i)+".wal", wal.SegmentSizeBytes)
	}
	size := int64(1)
	if ready {
		size = wal.SegmentSizeBytes
	}
	f.create("0.tmp", size)
}

func (f *fakeDisk) create(name string, size int64) {
	f.t.Helper()
	if err := os.MkdirAll(f.dir.wal(), 0o700); err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.dir.wal(), name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeDisk) roomAfter(charged, live, pages int64) int64 {
	f.t.Helper()
	room, free, err := f.room(charged, live, pages)
	if err != nil || free != f.left {
		f.t.Fatalf("%d free: %v", free, err)
	}
	return room
}

// look looks until only what is there now counts.
func (g *spaceGuard) look(t *testing.T) {
	t.Helper()
	for range keptLooks {
		if err := g.check(); err != nil {
			t.Fatal(err)
		}
	}
}

// FC-48: the reserves come in order, in the quota and on the disk.
func TestSpace(t *testing.T) {
	const quota, data, begin, end = 64 * mebibyte, 16 * mebibyte, 8 * mebibyte, mebibyte
	pages, disk := &fakePages{}, newFakeDisk(t)
	disk.hold(1, true)
	set := wal.SegmentSizeBytes + backendGrowth
	o := Options{QuotaBytes: quota, DataReserve: data, NewReserve: begin}
	g := newSpaceGuard(o, pages, disk.disk, zerolog.Nop())
	for _, c := range []struct {
		live, free int64
		want       Space
	}{
		{0, gibibyte, Normal},
		{quota - data, gibibyte, Normal},
		{quota - data + 1, gibibyte, RefuseData},
		{quota - begin, gibibyte, RefuseData},
		{quota - begin + 1, gibibyte, RefuseNew},
		{quota - end, gibibyte, RefuseNew},
		{quota - end + 1, gibibyte, RefuseEnd},
		{2 * quota, gibibyte, RefuseEnd},
		{0, set + 2*data, Normal},
		{0, set + 2*data - 1, RefuseData},
		{0, set + 2*begin - 1, RefuseNew},
		{0, set + 2*end - 1, RefuseEnd},
		{0, 0, RefuseEnd},
		{0, gibibyte, Normal},
	} {
		pages.live, disk.left = c.live, c.free
		g.look(t)
		if got := g.state(); got != c.want {
			t.Errorf("%d live, %d free: %v, want %v", c.live, c.free, got, c.want)
		}
	}
}

// FC-48: what is written counts at once, and until etcd is sure to have counted it.
func TestSpaceCountsWhatIsWritten(t *testing.T) {
	pages, disk := &fakePages{}, newFakeDisk(t)
	disk.hold(1, true)
	o := Options{QuotaBytes: leastQuota, DataReserve: leastDataReserve, NewReserve: leastNewReserve}
	g := newSpaceGuard(o, pages, disk.disk, zerolog.Nop())
	g.look(t)
	<-g.changed
	expect := func(want Space) {
		t.Helper()
		if got := g.state(); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	for _, want := range []Space{RefuseData, RefuseNew, RefuseEnd} {
		for range 1000 {
			if g.state() == want {
				break
			}
			g.wrote(100 << 10)
		}
		expect(want)
		select {
		case <-g.changed:
		default:
			t.Fatalf("%v was not told", want)
		}
	}
	if err := g.check(); err != nil { // nothing is committed yet
		t.Fatal(err)
	}
	expect(RefuseEnd)
	pages.live = 10 * mebibyte
	g.look(t)
	expect(Normal)
	disk.left = backendGrowth + wal.SegmentSizeBytes + pages.live + 3*leastDataReserve
	g.look(t)
	expect(Normal)
	g.wrote(leastDataReserve / 2) // in the backend and in the log
	expect(RefuseData)
}

// A disk that cannot be looked at is logged once, not five times a second, and again when that happens again.
func TestUnknownSpaceIsLoggedOnce(t *testing.T) {
	disk := newFakeDisk(t)
	disk.hold(1, true)
	var failing error
	disk.free = func(string) (int64, error) { return disk.left, failing }
	options, err := Options{Dir: "x"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	g := newSpaceGuard(options, &fakePages{}, disk.disk, zerolog.New(&log).Level(zerolog.WarnLevel))
	for _, failing = range []error{nil, os.ErrNotExist, os.ErrNotExist, os.ErrNotExist, nil, os.ErrNotExist} {
		g.inspect()
	}
	if n := strings.Count(log.String(), "space of the store unknown"); n != 2 {
		t.Errorf("logged %d times, want 2:\n%s", n, &log)
	}
}

func TestDiskSetsSegmentsAside(t *testing.T) {
	segment := wal.SegmentSizeBytes
	f := newFakeDisk(t)
	f.hold(1, true)
	if got, want := f.roomAfter(0, 0, 0), f.left-backendGrowth-segment; got != want {
		t.Errorf("room %d at the start, want %d: nobody knows how full the segment is", got, want)
	}
	f.left -= segment // as the next segment is begun
	f.hold(2, false)
	if got, want := f.roomAfter(1000, 0, 0), f.left-backendGrowth-segment-1000; got != want {
		t.Errorf("room %d while the next segment is not allocated, want %d", got, want)
	}
	f.hold(2, true)
	if got, want := f.roomAfter(1000, 0, 0), f.left-backendGrowth-2000; got != want {
		t.Errorf("room %d, want %d", got, want)
	}
	if got, want := f.roomAfter(2*segment, 0, 0), f.left-backendGrowth-segment; got != want {
		t.Errorf("room %d at the end of the segment, want %d", got, want)
	}
	if got, want := f.roomAfter(0, 0, 5000), f.left-backendGrowth-segment+5000; got != want {
		t.Errorf("room %d with free pages, want %d", got, want)
	}
	room := f.roomAfter(0, 0, 0)
	if got := f.roomAfter(0, 0, largestQuota); got != 2*room {
		t.Errorf("room %d, want %d: pages do not make room for the log", got, 2*room)
	}
	if got, want := f.roomAfter(0, 3000, 1000), room-2000; got != want {
		t.Errorf("room %d, want %d: a compaction may write again what is in use", got, want)
	}
	if got, want := f.roomAfter(0, 3000, 4000), room+1000; got != want {
		t.Errorf("room %d, want %d: a compaction takes free pages first", got, want)
	}
	if got, want := f.roomAfter(0, gibibyte, 0), room-f.rewrite; got != want {
		t.Errorf("room %d, want %d: a step of a compaction is bounded", got, want)
	}
}

func TestEnoughToStart(t *testing.T) {
	segment := wal.SegmentSizeBytes
	f := newFakeDisk(t)
	for _, c := range []struct {
		name string
		hold func()
		need int64
	}{
		{"a new store", func() {}, 3*segment + backendGrowth + 2*leastDataReserve},
		{"a store that exists", func() { f.hold(2, false) }, segment + backendGrowth},
		{"a store with its next segment", func() { f.hold(2, true) }, backendGrowth},
	} {
		c.hold()
		f.left = c.need
		if err := f.enoughToStart(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		f.left = c.need - 1
		if err := f.enoughToStart(); err == nil || !strings.Contains(err.Error(), strconv.FormatInt(c.need, 10)) {
			t.Errorf("%s: %v, want the bytes that are needed", c.name, err)
		}
	}
}

// FC-48: ends go on from a reserve, and all recovers without a restart when space comes back.
func TestSpaceOfAStoreRecovers(t *testing.T) {
	store := openStore(t, Options{QuotaBytes: leastQuota})
	if got := store.Space(); got != Normal {
		t.Fatalf("%v at the start", got)
	}
	value := strings.Repeat("x", 100<<10)
	for i := 0; store.Space() == Normal; i++ {
		put(t, store, "k"+strconv.Itoa(i), value)
		store.Wrote(len(value))
	}
	if got := store.Space(); got != RefuseData {
		t.Fatalf("%v after data, want its reserve to be left", got)
	}
	if _, err := store.Client().Delete(t.Context(), "k", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "back to normal", func() bool { return store.Space() == Normal })
}
