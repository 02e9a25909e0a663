package etcdstore

import (
	"testing"
	"time"
)

// A history that nobody compacts is noticed once it is old and long; a compaction, or a quiet cluster, is no reason to warn.
func TestWitness(t *testing.T) {
	store := openStore(t, Options{})
	first := put(t, store, "key", "value")
	w := witness{kv: store.Client(), key: "key"}
	now := time.Now()
	sees := func(what string, after time.Duration, newest int64, want bool) {
		t.Helper()
		now = now.Add(after)
		if kept, err := w.keeps(t.Context(), now, newest); err != nil || kept != want {
			t.Errorf("%s: %v, %v", what, kept, err)
		}
	}
	sees("first look", 0, first, false)
	sees("young", keptTooLong-time.Minute, first+muchHistory, false)
	sees("old and long", time.Minute, first+muchHistory, true)
	w.revision = first
	sees("told already", time.Minute, first+3*muchHistory, false)
	sees("old and short", keptTooLong, first+1, false)
	w.revision = first
	second := put(t, store, "key", "value")
	if _, err := store.Client().Compact(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	sees("compacted", keptTooLong, first+muchHistory, false)
}
