package conn

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-12: at an orderly shutdown every request ends in an answer or a closed socket, at once; nothing is left half alive.
func TestFC12OrderlyShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		var waiting held
		b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
		idle, silent, p := b.connectedPeer(t), b.newPeer(t), b.producingPeer(t)
		p.send(endTxnCommand(2, 0, 5, 0))
		synctest.Wait()
		start := time.Now()
		closed := make(chan error)
		go func() { closed <- b.Close(t.Context()) }()
		idle.wantClosed()
		silent.wantClosed()
		synctest.Wait()
		waiting.at(0)(nil)
		p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
		p.wantClosed()
		if _, err := p.network.Write(encodeFrame(t, newTxnCommand(3, 0), nil)); err == nil {
			t.Error("a command was taken after the shutdown")
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("it took %s", got)
		}
	})
}

// Close answers what was taken, within its context, whatever the peers do.
func TestShutdown(t *testing.T) {
	t.Run("answers what it has taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			var waiting held
			b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
			b.topics.send = func(*fakeProducer, Send) {}
			p := b.producingPeer(t)
			p.send(endTxnCommand(2, 0, 5, 0))
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			synctest.Wait()
			closed := make(chan error)
			go func() { closed <- b.Close(t.Context()) }()
			p.wantNothing()
			waiting.at(0)(nil)
			p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
			p.wantNothing()
			b.topics.producer(0).client.Receipt(0, 0, 5, 0)
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			p.wantClosed()
			if err := <-closed; err != nil {
				t.Errorf("close: %v", err)
			}
			if got := b.topics.producer(0).closed(); got != 1 {
				t.Errorf("the producer was closed %d times", got)
			}
			if got := b.lastClosed(); got != ClosedShutdown {
				t.Errorf("closed for %q", got)
			}
		})
	})
	t.Run("cuts off at the end of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			var done func(error)
			b.coordinators.end = func(_ txn.ID, _ txn.Action, d func(error)) { done = d }
			p := b.connectedPeer(t)
			p.send(endTxnCommand(2, 0, 5, 0))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			start := time.Now()
			if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
			if got := time.Since(start); got != 5*time.Second {
				t.Errorf("closed after %s", got)
			}
			p.wantClosed()
			done(nil) // too late: goes nowhere
		})
	})
	t.Run("a peer that does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{WriteTimeout: time.Hour})
			b.connectedPeer(t).send(newTxnCommand(1, 0))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			start := time.Now()
			if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
			if got := time.Since(start); got != 5*time.Second {
				t.Errorf("closed after %s", got)
			}
		})
	})
	t.Run("drains", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			var waiting held
			var termEnded func(bool)
			b.coordinators.connect = func(_ uint64, closed func(bool), done func(error)) {
				termEnded = closed
				done(nil)
			}
			b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
			idle, p := b.connectedPeer(t), b.connectedPeer(t)
			p.send(tcConnectCommand(1, 0))
			p.want(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
			p.send(endTxnCommand(2, 0, 5, 0))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start := time.Now()
			if err := b.Drain(ctx); err != nil {
				t.Errorf("drain: %v", err)
			}
			if got := time.Since(start); got != 2*time.Second {
				t.Errorf("drained after %s", got)
			}
			idle.wantClosed()
			termEnded(false)
			waiting.at(0)(txn.ErrCoordinatorNotFound)
			if got := p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE).GetEndTxnResponse().GetError(); got != pulsarproto.ServerError_TransactionCoordinatorNotFound {
				t.Errorf("END_TXN: %s", got)
			}
			start = time.Now()
			if err := b.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
			p.wantClosed()
			if got := time.Since(start); got != 0 {
				t.Errorf("closed after %s", got)
			}
		})
	})
	t.Run("refuses what comes later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			client, server := net.Pipe()
			defer client.Close()
			go b.ServeConn(server)
			newPeer(t, client).wantError(1<<64-1, pulsarproto.ServerError_NotAllowedError)
		})
	})
}

func TestMaxConnections(t *testing.T) {
	for name, options := range map[string]Options{
		"in total":    {MaxConnections: 2},
		"per address": {MaxConnectionsPerIP: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, options)
				first := b.connectedPeer(t)
				b.connectedPeer(t)
				client, server := net.Pipe()
				defer client.Close()
				go b.ServeConn(server)
				third := newPeer(t, client)
				if text := third.wantError(1<<64-1, pulsarproto.ServerError_NotAllowedError); !strings.Contains(text, "maximum number of connections") {
					t.Errorf("text %q", text)
				}
				third.wantClosed()
				first.network.Close()
				synctest.Wait()
				b.connectedPeer(t)
			})
		})
	}
}

// listen serves on a real socket.
func (b *bench) listen(t testing.TB) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; !errors.Is(err, ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr()
}

func dial(t testing.TB, address net.Addr) *peer {
	t.Helper()
	network, err := net.Dial(address.Network(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	return newPeer(t, network)
}

// Over a real socket, many clients pipeline requests, and each gets its own answers, once each.
func TestServe(t *testing.T) {
	b := newBench(t, Options{MaxPendingRequests: 64})
	address := b.listen(t)
	const clients, requests = 8, 2000
	var all sync.WaitGroup
	for range clients {
		p := dial(t, address)
		p.handshake()
		all.Go(func() {
			for i := range uint64(requests) {
				if _, err := p.network.Write(encodeFrame(t, newTxnCommand(i, i%2), nil)); err != nil {
					t.Errorf("write: %v", err)
					return
				}
			}
		})
		all.Go(func() {
			for i := range uint64(requests) {
				command, err := p.receive()
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				answer := command.GetNewTxnResponse()
				if answer.GetRequestId() != i || answer.GetTxnidMostBits() != i%2 {
					t.Errorf("answer %v, want request %d", answer, i)
					return
				}
			}
		})
	}
	all.Wait()
	if got := b.coordinators.next; got != clients*requests {
		t.Errorf("%d transactions, want %d", got, clients*requests)
	}
}

// Ten thousand silent connections cost a few KiB each, and a client beside them is served.
func TestSilentConnections(t *testing.T) {
	b := newBench(t, Options{})
	const silent = 10000
	peers := make([]net.Conn, silent)
	before := inUse()
	for i := range peers {
		client, server := net.Pipe()
		peers[i] = client
		b.ServeConn(server)
	}
	defer func() {
		for _, p := range peers {
			p.Close()
		}
	}()
	p := b.connectedPeer(t)
	p.alive()
	const limit = 24 << 10 // two goroutines, the pipe, the session; the race detector adds a third
	each := (inUse() - before) / silent
	t.Logf("a silent connection takes %d bytes", each)
	if each > limit {
		t.Errorf("a silent connection takes %d bytes, want at most %d", each, limit)
	}
}

// inUse is the memory of live objects and goroutine stacks.
func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}
