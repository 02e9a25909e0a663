package server

import (
	"testing"

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
