package crash

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A server that answers before it writes is found out: the checks of this package can fail.
func TestAnswerBeforeWriteIsCaught(t *testing.T) {
	s := newInstance(t, binaries.Failpoint(t))
	s.Start()
	l := newLoad(t, s.Options.Port)
	l.repeat(l.bareTransactions)
	l.repeat(l.askAgain)
	for range 3 {
		l.restarts.Add(1)
		s.Kill()
		s.Start(failpoint.Variable + "=early:LOG:100ms")
		pause(l.ctx, time.Second)
	}
	s.Kill()
	s.Start()
	l.stop()
	l.finish(s.Server)
	found := l.history.Check()
	t.Logf("%d anomalies in %+v", len(found), l.history.Counts())
	for _, anomaly := range found {
		if anomaly.Kind == history.Contradiction || anomaly.Kind == history.IDRepeated {
			t.Log("the first: ", anomaly)
			return
		}
	}
	t.Errorf("no answers that contradict each other were found, only %v", found)
}

// bareTransactions opens transactions and ends them at once.
func (l *load) bareTransactions(ctx context.Context) error {
	client, err := wiretopic.DialTC(ctx, l.addr)
	if err != nil {
		return err
	}
	defer closeQuietly(client)
	for ctx.Err() == nil {
		id, err := l.begin(ctx, client, 5*time.Second, "")
		if err != nil {
			return err
		}
		if !l.end(ctx, client, id, txn.Action(rand.IntN(2)), "") {
			return errNoAnswer
		}
	}
	return nil
}
