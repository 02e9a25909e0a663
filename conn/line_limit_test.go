package conn

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// Peers cannot fill the log: ten lines about their faults a second, and a count. Events tell of every one.
func TestFaultsAreLoggedInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, Options{Log: zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.InfoLevel)})
		fault := func() {
			p := b.newPeer(t)
			p.write(tlsHello[:8])
			p.wantClosed()
			synctest.Wait()
		}
		for range 25 {
			fault()
		}
		if got := strings.Count(log.String(), "bad input"); got != 10 {
			t.Errorf("%d lines for 25 faults in one second", got)
		}
		time.Sleep(time.Second)
		fault()
		fault()
		if lines := strings.Split(log.String(), "\n"); len(lines) != 13 || !strings.Contains(lines[10], `"lines_skipped":15`) ||
			!strings.Contains(lines[11], `"lines_skipped":0`) {
			t.Errorf("log: %s", log.String())
		}
		if got := len(b.badInputs()); got != 27 {
			t.Errorf("%d events for 27 faults", got)
		}
	})
}
