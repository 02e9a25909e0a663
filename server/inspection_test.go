package server

import (
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A transaction that a full store keeps from ending says so, and what to do.
func TestPresentHeld(t *testing.T) {
	d := fsm.Description{Status: txn.Open, TTLMillis: 1000}
	if got := present(&d).Reason; got != "" {
		t.Errorf("not held: %q", got)
	}
	d.Held = true
	for _, part := range []string{"full", "etcdQuotaBytes", "defragment"} {
		if got := present(&d).Reason; !strings.Contains(got, part) {
			t.Errorf("held: %q, want %q in it", got, part)
		}
	}
}
