package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

// everyKind is each store effect of the server, with the effect of its kind at which the server is stopped: a number that
// finds it at work.
var everyKind = []struct {
	kind failpoint.Kind
	nth  int
}{
	{failpoint.New, 20}, {failpoint.Add, 10}, {failpoint.Send, 10}, {failpoint.Ack, 5}, {failpoint.Decision, 10},
	{failpoint.Terminal, 10}, {failpoint.Settle, 10}, {failpoint.TopicCommit, 5}, {failpoint.TopicAbort, 3}, {failpoint.AckCommit, 3},
	{failpoint.AckAbort, 2}, {failpoint.Plain, 10}, {failpoint.PlainAck, 5}, {failpoint.Rolling, 1}, {failpoint.Load, 1},
	{failpoint.Leader, 1}, {failpoint.TopicLoad, 2}, {failpoint.Subscribe, 3}, {failpoint.Terminate, 3}, {failpoint.Delete, 3},
}

// dieTime bounds the work up to the failpoint.
const dieTime = 60 * time.Second

// A server that dies just before or just after any of its store effects keeps every promise.
func TestEveryFailpoint(t *testing.T) {
	for i, c := range everyKind {
		if !*everywhereFlag && i%5 != 4 {
			continue
		}
		for _, when := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s %s", when, c.kind), func(t *testing.T) {
				dieAt(t, c.kind, fmt.Sprintf("%s:%s:%d", when, c.kind, c.nth))
			})
		}
	}
}

// dieAt works, is killed, starts with the failpoint, works until it dies there, and starts again.
func dieAt(t *testing.T, kind failpoint.Kind, rule string) {
	s := newInstance(t, binaries.Failpoint(t))
	if kind == failpoint.Rolling {
		s.Options.Set = append(s.Options.Set, "transactionMetaPersistUnnamedCount=0")
	}
	s.Start()
	l := newLoad(t, s, workload.Options{LongestTTL: 2 * time.Second, UnnamedForgotten: kind == failpoint.Rolling})
	if kind == failpoint.Rolling {
		l.StartForgotten()
	}
	l.Start()
	switch kind {
	case failpoint.Subscribe, failpoint.Terminate, failpoint.Delete:
		l.StartLives()
	}
	l.Pause(500 * time.Millisecond)
	s.Kill()
	l.Restarted()
	s.StartToDie(failpoint.Variable + "=" + rule)
	s.AwaitDeath(dieTime)
	l.Restarted()
	s.Start()
	l.Pause(500 * time.Millisecond)
	l.Stop()
	l.Finish()
	l.Check()
}
