package crash

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A server that answers before it writes is found out: the checks of this package can fail.
func TestAnswerBeforeWriteIsCaught(t *testing.T) {
	for name, c := range map[string]struct {
		kind failpoint.Kind
		work func(*load)
		want []history.Kind
	}{
		"coordinator": {failpoint.Log, func(l *load) { l.repeat(l.bareTransactions); l.repeat(l.askAgain) },
			[]history.Kind{history.ForgottenEarly, history.Unasked, history.ChangedMind, history.Resurrection}},
		"topic": {failpoint.Plain, func(l *load) { l.repeat((&plainWorker{load: l}).session) }, []history.Kind{history.MessageLost}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstance(t, binaries.Failpoint(t))
			s.Start()
			l := newLoad(t, s)
			l.longestTTL = 2 * time.Second
			c.work(l)
			for range 3 {
				s.Kill()
				l.restarts.Add(1)
				s.Start(failpoint.Variable + "=early:" + string(c.kind) + ":50ms")
				pause(l.ctx, 500*time.Millisecond)
			}
			s.Kill()
			s.Start()
			l.stop()
			l.finish()
			found := l.history.Check()
			t.Logf("%d anomalies in %+v", len(found), l.history.Counts())
			first := slices.IndexFunc(found, func(a history.Anomaly) bool { return slices.Contains(c.want, a.Kind) })
			if first < 0 {
				t.Fatalf("found %v, want one of: %v", found, c.want)
			}
			t.Log(found[first])
		})
	}
}

// bareTransactions opens transactions and ends them at once.
func (l *load) bareTransactions(ctx context.Context) error {
	client, err := wiretopic.DialTC(ctx, l.addr)
	if err != nil {
		return err
	}
	defer closeQuietly(client)
	for ctx.Err() == nil {
		id, err := l.begin(ctx, client, l.ttl(), "")
		if err != nil {
			return err
		}
		if err := l.end(ctx, client, id, txn.Action(rand.IntN(2)), ""); err != nil {
			return err
		}
		pause(ctx, askPause)
	}
	return nil
}
