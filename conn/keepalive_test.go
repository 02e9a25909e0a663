package conn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-33: a silent peer gets a PING after one interval and is closed after two; one that answers is never closed.
func TestFC33KeepAlive(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second})
			p := b.connectedPeer(t)
			start := time.Now()
			if command, err := p.receiveAny(); err != nil || command.GetType() != pulsarproto.BaseCommand_PING {
				t.Fatalf("got %v, %v", command, err)
			}
			if got := time.Since(start); got != 30*time.Second {
				t.Errorf("PING after %s", got)
			}
			p.wantClosed()
			if got := time.Since(start); got != 60*time.Second {
				t.Errorf("closed after %s", got)
			}
			synctest.Wait()
			if got := b.lastClosed(); got != ClosedSilent {
				t.Errorf("closed for %q", got)
			}
		})
	})
	t.Run("half a frame and silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second})
			p := b.connectedPeer(t)
			frame := encodeFrame(t, newTxnCommand(1, 0), nil)
			p.write(frame[:len(frame)/2])
			if command, err := p.receiveAny(); err != nil || command.GetType() != pulsarproto.BaseCommand_PING {
				t.Fatalf("got %v, %v", command, err)
			}
			p.wantClosed()
			synctest.Wait()
			if got := b.lastClosed(); got != ClosedSilent {
				t.Errorf("closed for %q", got)
			}
		})
	})
	t.Run("answering", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second})
			p := b.connectedPeer(t)
			for range 5 {
				p.answerPing()
			}
			p.alive()
		})
	})
	t.Run("not read at a bound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second, MaxPendingRequests: 1})
			var waiting held
			b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
			p := b.connectedPeer(t)
			p.send(endTxnCommand(1, 0, 1, 0), endTxnCommand(2, 0, 2, 0))
			go func() {
				time.Sleep(5*time.Minute - time.Millisecond)
				waiting.at(0)(nil)
				synctest.Wait()
				waiting.at(1)(nil)
			}()
			p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE) // PING after PING comes before it
			p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
			p.answerPing() // and none of them counts from the moment on that it is read again
			p.alive()
		})
	})
	t.Run("protocol version 0 knows no PING", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second})
			p := b.newPeer(t)
			p.send(connectCommand(0))
			p.want(pulsarproto.BaseCommand_CONNECTED)
			time.Sleep(5 * time.Minute)
			p.wantNothing()
		})
	})
	t.Run("off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: -1})
			p := b.connectedPeer(t)
			silent := b.newPeer(t)
			time.Sleep(time.Hour)
			p.wantNothing()
			silent.wantClosed()
			if got := b.lastClosed(); got != ClosedHandshake {
				t.Errorf("closed for %q", got)
			}
		})
	})
}

// FC-33: the connection of a dead predecessor is told from a live one.
func TestFC33Liveness(t *testing.T) {
	t.Run("live", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			answers := make(chan bool, 2)
			for range 2 {
				go func() { answers <- b.topics.producer(0).client.Alive(t.Context()) }()
			}
			p.answerPing()
			p.answerPing()
			if first, second := <-answers, <-answers; !first || !second {
				t.Error("a live connection counts as dead")
			}
		})
	})
	t.Run("dead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{LivenessTimeout: 5 * time.Second})
			p := b.producingPeer(t)
			start := time.Now()
			if b.topics.producer(0).client.Alive(t.Context()) {
				t.Error("a silent connection counts as live")
			}
			if got := time.Since(start); got != 5*time.Second {
				t.Errorf("told after %s", got)
			}
			p.wantClosed() // its producer is gone: nothing that it sends would be answered
			synctest.Wait()
			if got, reason := b.topics.producer(0).closed(), b.lastClosed(); got != 1 || reason != ClosedSilent {
				t.Errorf("the producer was closed %d times, the connection for %q", got, reason)
			}
		})
	})
	t.Run("ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.consumingPeer(t)
			answer := make(chan bool)
			go func() { answer <- b.topics.consumer(0).client.Alive(t.Context()) }()
			synctest.Wait()
			p.network.Close()
			if <-answer {
				t.Error("a connection that ends counts as live")
			}
			if b.topics.consumer(0).client.Alive(t.Context()) {
				t.Error("a connection that has ended counts as live")
			}
		})
	})
	t.Run("nobody waits for the answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
			defer giveUp()
			if !b.topics.producer(0).client.Alive(ctx) {
				t.Error("a connection counts as dead that had no time to answer")
			}
			p.answerPing()
			p.alive()
		})
	})
	t.Run("off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{LivenessTimeout: -1})
			b.producingPeer(t)
			if !b.topics.producer(0).client.Alive(t.Context()) {
				t.Error("a connection counts as dead without a probe")
			}
		})
	})
}

// A connection's id is its own.
func TestCnxID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.producingPeer(t)
		b.producingPeer(t)
		if first, second := b.topics.producer(0).client.CnxID(), b.topics.producer(1).client.CnxID(); first == second {
			t.Errorf("both have id %d", first)
		}
	})
}
