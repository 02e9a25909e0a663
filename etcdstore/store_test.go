package etcdstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var space = keyspace.New("pulsar-tc", "test")

func TestMain(m *testing.M) {
	if dir := os.Getenv(fullDiskDir); dir != "" {
		fillDisk(dir)
	}
	goleak.VerifyTestMain(m)
}

func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Space = space
	store, err := Open(t.Context(), o, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

func closeStore(t testing.TB, store *Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func openError(t testing.TB, o Options) error {
	t.Helper()
	o.Space = space
	store, err := Open(t.Context(), o, zerolog.Nop())
	if err == nil {
		closeStore(t, store)
		t.Fatal("opened")
	}
	return err
}

// inside is the care of an embedded store.
func inside(store *Store) *embedded { return store.care.(*embedded) }

func put(t testing.TB, store *Store, key, value string) int64 {
	t.Helper()
	response, err := store.Client().Put(t.Context(), key, value)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return response.Header.Revision
}

// eventually polls until done is true.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

func TestValuesLast(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, Options{Dir: dir})
	put(t, store, "key", "value")
	closeStore(t, store)
	got, err := openStore(t, Options{Dir: dir}).Client().Get(t.Context(), "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Fatalf("%v, %v", got, err)
	}
}

// The member has no listener, so it needs no port and nobody can reach it.
func TestListensNowhere(t *testing.T) {
	store := openStore(t, Options{})
	if n := len(inside(store).server.Clients) + len(inside(store).server.Peers); n != 0 {
		t.Errorf("%d listeners", n)
	}
}

func TestFilesBelongToTheOwner(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	openStore(t, Options{Dir: dir})
	for name, want := range map[string]os.FileMode{"etcd": 0o700, "etcd/member": 0o700, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, Options{Dir: dir})
	began := time.Now()
	err := openError(t, Options{Dir: dir})
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.Dir != dir {
		t.Fatalf("%v, want an *InUseError that names pid %d", err, os.Getpid())
	}
	if !strings.Contains(err.Error(), dir) {
		t.Errorf("%q does not name the directory", err)
	}
	if lockPatience >= time.Second {
		t.Errorf("refused after %v only", time.Since(began))
	}
	closeStore(t, store)
	openStore(t, Options{Dir: dir})
}

func TestBadDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, reason string
		rootMay           bool
	}{
		{"none", "", "no data directory", false},
		{"a file", file, "not a directory", false},
		{"below a file", filepath.Join(file, "data"), "not a directory", false},
		{"not writable", closed, "not writable", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.rootMay && os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			if err := openError(t, Options{Dir: c.dir}); !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		reason string
	}{
		{"quota", func(o *Options) { o.QuotaBytes = -1 }, "quota"},
		{"quota without room for reserves", func(o *Options) { o.QuotaBytes = leastQuota - 1 }, "quota"},
		{"quota that overflows", func(o *Options) { o.QuotaBytes = 1 << 62 }, "quota"},
		{"reserve beyond the quota", func(o *Options) { o.QuotaBytes, o.DataReserve = 10, 11 }, "reserves"},
		{"reserves in the wrong order", func(o *Options) { o.DataReserve, o.NewReserve = gibibyte, gibibyte+1 }, "reserves"},
		{"reserve of too few ends", func(o *Options) { o.NewReserve = leastNewReserve - 1 }, "reserves"},
		{"reserve of data too small", func(o *Options) { o.DataReserve = leastDataReserve - 1 }, "reserves"},
		{"message", func(o *Options) { o.MaxMessageBytes = -1 }, "message size"},
		{"message that overflows", func(o *Options) { o.MaxMessageBytes = 1 << 30 }, "message size"},
		{"operations", func(o *Options) { o.MaxTxnOps = 1 }, "operations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			c.change(&o)
			if err := openError(t, o); !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

func TestLayoutIsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, Options{Dir: dir, InitialCoordinators: 3})
	if got := store.Coordinators(); got != 3 {
		t.Errorf("%d coordinators, want 3", got)
	}
	closeStore(t, store)
	store = openStore(t, Options{Dir: dir, InitialCoordinators: 5})
	if got := store.Coordinators(); got != 3 {
		t.Errorf("%d coordinators, want the 3 of the first start", got)
	}
}

func TestLayoutThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		check            func(error) bool
	}{
		{"newer schema", space.Schema(), "2", func(err error) bool {
			var newer *NewerSchemaError
			return errors.As(err, &newer) && newer.Stored == 2 && newer.Known == keyspace.SchemaVersion
		}},
		{"schema is no number", space.Schema(), "one", isCorrupt(space.Schema())},
		{"no coordinators", space.Coordinators(), "0", isCorrupt(space.Coordinators())},
		{"negative coordinators", space.Coordinators(), "-1", isCorrupt(space.Coordinators())},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			store := openStore(t, Options{Dir: dir})
			put(t, store, c.key, c.value)
			closeStore(t, store)
			if err := openError(t, Options{Dir: dir}); !c.check(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func isCorrupt(key string) func(error) bool {
	return func(err error) bool {
		var corrupt *txn.CorruptError
		return errors.As(err, &corrupt) && corrupt.Key == key && corrupt.Reason != ""
	}
}

// fsync is on, and the write-ahead log was synced before a write is acknowledged.
func TestSyncedBeforeAcknowledged(t *testing.T) {
	store := openStore(t, Options{})
	if inside(store).server.Config().UnsafeNoFsync {
		t.Fatal("fsync is off")
	}
	before := fsyncs(t)
	for range 20 {
		put(t, store, "key", "value")
		now := fsyncs(t)
		if now <= before {
			t.Fatalf("acknowledged without a sync: %d syncs before, %d behind", before, now)
		}
		before = now
	}
}

// fsyncs is how often etcd synced its write-ahead log.
func fsyncs(t testing.TB) uint64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "etcd_disk_wal_fsync_duration_seconds" {
			return family.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("etcd does not count its syncs")
	return 0
}

func TestLimitsAreOurs(t *testing.T) {
	store := openStore(t, Options{MaxMessageBytes: 5 * mebibyte})
	put(t, store, "large", strings.Repeat("x", 5*mebibyte))
	ops := make([]clientv3.Op, 8192)
	for i := range ops {
		ops[i] = clientv3.OpPut("key/"+string(rune(i+0x10000)), "")
	}
	if _, err := store.Client().Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Error(err)
	}
	if got := (Options{}).MaxRequestBytes(); got != 6*mebibyte {
		t.Errorf("requests of up to %d bytes", got)
	}
}
