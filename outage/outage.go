// Package outage paces attempts at what fails for a while, and tells the failure that is worth a line in the log.
package outage

import (
	"context"
	"time"
)

// The pause between two attempts: the first doubles up to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
)

// Outage is the time from the first failure of something until it succeeds. The zero value: there is none. One goroutine uses it.
type Outage struct{ pause time.Duration }

// Failed notes a failure and reports whether it begins an outage.
func (o *Outage) Failed() (begins bool) {
	begins = o.pause == 0
	o.pause = min(max(2*o.pause, firstPause), lastPause)
	return begins
}

// Over notes a success.
func (o *Outage) Over() { o.pause = 0 }

// Pause returns when it is time for another attempt, or ctx is done.
func (o *Outage) Pause(ctx context.Context) {
	timer := time.NewTimer(o.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
