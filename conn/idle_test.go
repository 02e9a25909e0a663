package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A connection whose coordinator was handed over ends when nothing was asked on it for a second and no answer is owed; one that is
// never idle, when no answer is owed after 20 s, and at last after 30 s.
func TestHandedOverConnections(t *testing.T) {
	for _, c := range []struct {
		name string
		busy time.Duration // between two requests; 0: none
		owed bool          // an answer that does not come
		from time.Duration // when it ends, about
	}{
		{"idle", 0, false, time.Second},
		{"busy", 500 * time.Millisecond, false, 20 * time.Second},
		{"owed an answer", 0, true, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{KeepAlive: -1})
				var ended func(bool)
				b.coordinators.connect = func(_ uint64, e func(bool), done func(error)) {
					ended = e
					done(nil)
				}
				b.coordinators.end = func(txn.ID, txn.Action, func(error)) {} // never answers
				p := b.connectedPeer(t)
				p.send(tcConnectCommand(1, 0))
				p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
				if c.owed {
					p.send(endTxnCommand(2, 0, 7, 0))
					synctest.Wait()
				}
				ended(true)
				ended(true)
				for request := uint64(3); c.busy > 0 && time.Duration(request-3)*c.busy < c.from; request++ {
					p.send(tcConnectCommand(request, 0))
					p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
					time.Sleep(c.busy)
				}
				if c.busy == 0 {
					time.Sleep(c.from - 50*time.Millisecond)
					p.wantNothing()
				}
				time.Sleep(500 * time.Millisecond)
				p.wantClosed()
				if got := b.lastClosed(); got != ClosedHandedOver {
					t.Errorf("closed for %q", got)
				}
			})
		})
	}
}
