package crash

import (
	"slices"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

// letWork lets the load run until it was answered some times, or cannot be.
func letWork(l *workload.Load) {
	answered := func() int { c := l.History().Counts(); return c.Opened + c.Messages }
	enough, late := answered()+20, time.Now().Add(30*time.Second)
	for l.Pause(500 * time.Millisecond); answered() < enough && time.Now().Before(late); {
		l.Pause(50 * time.Millisecond)
	}
}

// A server that answers before it writes is found out: the checks of this package can fail.
func TestAnswerBeforeWriteIsCaught(t *testing.T) {
	for name, c := range map[string]struct {
		kind failpoint.Kind
		work func(*workload.Load)
		want []history.Kind
	}{
		"coordinator": {failpoint.Log, func(l *workload.Load) { l.StartBare() },
			[]history.Kind{history.ForgottenEarly, history.Unasked, history.ChangedMind, history.Resurrection}},
		"topic": {failpoint.Plain, func(l *workload.Load) { l.StartPlain() }, []history.Kind{history.MessageLost}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstance(t, binaries.Failpoint(t))
			s.Start()
			l := newLoad(t, s, workload.Options{LongestTTL: 2 * time.Second})
			c.work(l)
			for range 3 {
				s.Kill()
				l.Restarted()
				s.Start(failpoint.Variable + "=early:" + string(c.kind) + ":50ms")
				letWork(l)
			}
			s.Kill()
			s.Start()
			l.Stop()
			l.Finish()
			found := l.History().Check()
			t.Logf("%d anomalies in %+v", len(found), l.History().Counts())
			first := slices.IndexFunc(found, func(a history.Anomaly) bool { return slices.Contains(c.want, a.Kind) })
			if first < 0 {
				t.Fatalf("found %v, want one of: %v", found, c.want)
			}
			t.Log(found[first])
		})
	}
}
