package process

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Binaries are the builds of a test binary's tests, each built when it is needed first. Call Main from TestMain.
type Binaries struct {
	// Ready, if not empty, is an ordinary build that somebody made already.
	Ready string

	dir   string
	mu    sync.Mutex // held over a build
	built map[string]string
}

// Main runs the tests and removes what was built for them.
func (b *Binaries) Main(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "pulsar-tc-test")
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}()
	b.dir, b.built = dir, map[string]string{}
	return m.Run()
}

// Ordinary returns the path of a build without tags.
func (b *Binaries) Ordinary(t testing.TB) string {
	t.Helper()
	if b.Ready != "" {
		// A test's working directory is its package's.
		path, err := filepath.Abs(b.Ready)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return b.get(t)
}

// Failpoint returns the path of a build that obeys package failpoint.
func (b *Binaries) Failpoint(t testing.TB) string {
	t.Helper()
	return b.get(t, "failpoint")
}

func (b *Binaries) get(t testing.TB, tags ...string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	name := "ordinary"
	if len(tags) > 0 {
		name = tags[0]
	}
	if b.built[name] == "" {
		binary, err := Build(context.Background(), b.dir, tags...)
		if err != nil {
			t.Fatal(err)
		}
		b.built[name] = binary
	}
	return b.built[name]
}
