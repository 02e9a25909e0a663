package outage

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		for range 2 {
			var pauses []time.Duration
			for attempt := range 7 {
				if begins := o.Failed(); begins != (attempt == 0) {
					t.Errorf("failure %d begins an outage: %v", attempt, begins)
				}
				began := time.Now()
				o.Pause(t.Context())
				pauses = append(pauses, time.Since(began)/time.Millisecond)
			}
			if !slices.Equal(pauses, []time.Duration{100, 200, 400, 800, 1600, 3000, 3000}) {
				t.Errorf("pauses in ms: %d", pauses)
			}
			o.Over()
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		o.Failed()
		began := time.Now()
		if o.Pause(over); time.Since(began) != 0 {
			t.Error("paused although nobody waits for it any more")
		}
	})
}
