package server

import (
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/conn"
)

// 0 or less turns the publish buffer's limit off, as in Pulsar.
func TestPublishBuffer(t *testing.T) {
	for value, want := range map[string]int{"": 256 << 20, "64": 64 << 20, "0": -1, "-1": -1} {
		options := load(t, "maxMessagePublishBufferSizeInMB="+value)
		if got := options.connections(conn.Events{}, limits{}).MaxPublishBytes; got != want {
			t.Errorf("maxMessagePublishBufferSizeInMB=%s: %d bytes, want %d", value, got, want)
		}
	}
}

// TC-7: who asks for a leader waits until a dead one is followed, but is answered before clients give up, however long the lease is.
func TestLeaderWait(t *testing.T) {
	for lease, want := range map[string]time.Duration{"6": 8 * time.Second, "3600": loadWait} {
		options := load(t, "coordinatorLeaseSeconds="+lease)
		if got := options.leaderWait(); got != want {
			t.Errorf("coordinatorLeaseSeconds=%s: %v, want %v", lease, got, want)
		}
	}
}
