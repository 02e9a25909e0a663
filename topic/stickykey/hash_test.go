package stickykey

import "testing"

// TestHash compares with values of the hash tests of Pulsar's clients.
func TestHash(t *testing.T) {
	for key, want := range map[string]int{"key1": 462881061, "key2": 1936800180} {
		if got := Murmur([]byte(key)); got != want {
			t.Errorf("%q has %d, want %d", key, got, want)
		}
		if got := Hash([]byte(key)); got != want%Size {
			t.Errorf("hash of %q is %d, want %d", key, got, want%Size)
		}
	}
	if got := Hash(nil); got != 1 {
		t.Errorf("a hash of 0 became %d, want 1", got)
	}
}
