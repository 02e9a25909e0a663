package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// handedOver returns a peer whose coordinator is handed over by ended.
func handedOver(t *testing.T, b *bench) (p *peer, ended func()) {
	t.Helper()
	var moved func(bool)
	b.coordinators.connect = func(_ uint64, ended func(bool), done func(error)) {
		moved = ended
		done(nil)
	}
	p = b.connectedPeer(t)
	p.send(tcConnectCommand(1, 0))
	p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
	return p, func() { moved(true) }
}

// A connection whose coordinator was handed over ends when nothing was asked on it for a second and no answer is owed, and after
// thirteen seconds whatever is owed.
func TestHandedOverConnections(t *testing.T) {
	for _, c := range []struct {
		name string
		owed bool          // an answer that does not come
		from time.Duration // when it ends, about
	}{
		{"idle", false, time.Second},
		{"owed an answer", true, idleLimit + lastAnswers},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{KeepAlive: -1})
				b.coordinators.end = func(txn.ID, txn.Action, func(error)) {} // never answers
				p, ended := handedOver(t, b)
				if c.owed {
					p.send(endTxnCommand(2, 0, 7, 0))
					synctest.Wait()
				}
				ended()
				ended()
				time.Sleep(c.from - 50*time.Millisecond)
				p.wantNothing()
				time.Sleep(500 * time.Millisecond)
				p.wantClosed()
				if got := b.lastClosed(); got != ClosedHandedOver {
					t.Errorf("closed for %q", got)
				}
			})
		})
	}
}

// A connection that is never idle ends after eight seconds, in a pause between an answer and the next command.
func TestBusyHandedOverConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{KeepAlive: -1})
		var answer func(error)
		b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { answer = done }
		p, ended := handedOver(t, b)
		began := time.Now()
		ended()
		for request := uint64(2); b.connections() > 0; request++ {
			p.send(endTxnCommand(request, 0, 7, 0))
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
			answer(nil)
			p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
		}
		if took := time.Since(began); took < busyLimit || took > busyLimit+time.Second {
			t.Errorf("ended after %v", took)
		}
		p.wantClosed()
		if got := b.lastClosed(); got != ClosedHandedOver {
			t.Errorf("closed for %q", got)
		}
	})
}

// A connection that never pauses ends when what it asked for is answered, after twelve seconds.
func TestHandedOverConnectionWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{KeepAlive: -1})
		var answers []func(error)
		b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { answers = append(answers, done) }
		p, ended := handedOver(t, b)
		ended()
		p.send(endTxnCommand(2, 0, 7, 0))
		synctest.Wait()
		time.Sleep(idleLimit + lastAnswers/2)
		answers[0](nil)
		if got := p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE).GetEndTxnResponse(); got.GetRequestId() != 2 || got.Error != nil {
			t.Errorf("got %v", got)
		}
		p.wantClosed()
	})
}
