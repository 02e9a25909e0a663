package conn

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestTcClientConnect(t *testing.T) {
	t.Run("TC-6 no such coordinator", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.connectedPeer(t)
			for _, tc := range []uint64{2, 999, math.MaxUint64} {
				p.send(tcConnectCommand(tc, tc))
				p.wantError(tc, pulsarproto.ServerError_NotAllowedError)
			}
			if b.coordinators.connects != 0 {
				t.Error("a coordinator was asked")
			}
		})
	})
	t.Run("TC-2 scalable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.connectedPeer(t)
			p.send(scalable(tcConnectCommand(1, 0)))
			p.wantError(1, pulsarproto.ServerError_UnsupportedVersionError)
		})
	})
	t.Run("TC-7 requests that wait for a load share its result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			var waiting held
			b.coordinators.connect = func(_ uint64, _ func(bool), d func(error)) { waiting.hold(d) }
			p := b.connectedPeer(t)
			p.send(tcConnectCommand(1, 0), tcConnectCommand(2, 0))
			p.wantNothing()
			waiting.at(0)(fmt.Errorf("coordinator 0 is loading: %w", txn.ErrNotReady))
			p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
			p.wantError(2, pulsarproto.ServerError_ServiceNotReady)

			p.send(tcConnectCommand(3, 0))
			synctest.Wait()
			waiting.at(1)(nil)
			p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
			p.send(tcConnectCommand(4, 0))
			if got := p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE).GetTcClientConnectResponse().GetRequestId(); got != 4 {
				t.Errorf("request %d", got)
			}
			if got := waiting.count(); got != 2 {
				t.Errorf("the coordinator was asked %d times, want 2", got)
			}
		})
	})
	t.Run("TC-24 the end of the term answers, then closes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			var termEnded func(bool)
			b.coordinators.connect = func(_ uint64, closed func(bool), done func(error)) {
				termEnded = closed
				done(nil)
			}
			var waiting held
			b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
			other := b.connectedPeer(t)
			p := b.connectedPeer(t)
			p.send(tcConnectCommand(1, 0))
			p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
			p.send(endTxnCommand(2, 0, 7, 0), endTxnCommand(3, 0, 8, 0))
			synctest.Wait()
			for _, done := range waiting.all() {
				done(txn.ErrCoordinatorNotFound)
			}
			termEnded(false)
			for range 2 {
				code, _, _ := refusal(p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE))
				if code != pulsarproto.ServerError_TransactionCoordinatorNotFound {
					t.Errorf("code %s", code)
				}
			}
			p.wantClosed()
			synctest.Wait()
			if got := b.lastClosed(); got != ClosedTermEnded {
				t.Errorf("closed for %q", got)
			}
			other.alive() // it never registered
		})
	})
}
