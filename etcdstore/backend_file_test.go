package etcdstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// A file of which the end is missing, as a copy that was cut off, is refused with its name and size.
func TestBackendThatIsCutOff(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(t.Context(), Options{Dir: dir, Space: space}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "etcd", "member", "snap", "db")
	for _, size := range []int64{20_000, 5_000, 100} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Dir: dir, Space: space}, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("%d bytes: %v, want a damaged file", size, err)
		}
	}
}
