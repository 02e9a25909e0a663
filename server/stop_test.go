package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// stuckKV has no answer for the name of the topic "stuck".
type stuckKV struct {
	clientv3.KV
	asked chan struct{} // gets a token at each try
	fail  error         // nil: answers when ctx is done
}

func (k *stuckKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if !strings.HasSuffix(key, "/stuck") {
		return k.KV.Get(ctx, key, options...)
	}
	select {
	case k.asked <- struct{}{}:
	default:
	}
	if k.fail != nil {
		return nil, k.fail
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// startOver starts a server whose store is asked through kv, which is given the real one as under. The test stops it.
func startOver(t *testing.T, options Options, under *clientv3.KV, kv clientv3.KV) *Server {
	t.Helper()
	options.WrapKV = func(real clientv3.KV) clientv3.KV {
		*under = real
		return kv
	}
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// FC-12: an orderly stop answers an END whose participant is stuck with TransactionCoordinatorNotFound, which clients repeat
// elsewhere, and does not wait for the participant, nor for a peer of either port that does not read.
func TestFC12StopWithAStuckParticipant(t *testing.T) {
	for name, fail := range map[string]error{"fails": errors.New("corrupt"), "hangs": nil} {
		t.Run(name, func(t *testing.T) {
			options := load(t)
			kv := &stuckKV{asked: make(chan struct{}, 1), fail: fail}
			s := startOver(t, options, &kv.KV, kv)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			client := dialTC(ctx, t, s)
			id, err := client.Begin(ctx, 0, 60_000, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Call(ctx, wireclient.AddPartitions(id, "persistent://public/default/stuck")); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- client.End(ctx, id, txn.Commit, "") }()
			<-kv.asked
			halfRequest(t, s)

			if err := s.Close(t.Context()); err != nil { // would not return if it waited for the participant or the peer
				t.Errorf("close: %v", err)
			}
			var refusal *wireclient.ServerError
			if err := <-ended; !errors.As(err, &refusal) || refusal.Code != pulsarproto.ServerError_TransactionCoordinatorNotFound {
				t.Errorf("END_TXN: %v, want TransactionCoordinatorNotFound", err)
			}
		})
	}
}

// halfRequest leaves an HTTP request under way until the server ends it.
func halfRequest(t *testing.T, s *Server) {
	t.Helper()
	network, err := net.Dial("tcp", s.ports.web.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	const head = "POST /pulsar-tc/v1/transactions/0/1/resolve HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(network, head); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(network).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v, want 100 Continue", line, err)
	}
}

// lateKV refuses and counts what it is asked when the store's client is closed.
type lateKV struct {
	clientv3.KV
	client atomic.Pointer[clientv3.Client]
	late   atomic.Int64
}

func (k *lateKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if client := k.client.Load(); client != nil && client.Ctx().Err() != nil {
		k.late.Add(1)
		return nil, errors.New("closed")
	}
	return k.KV.Get(ctx, key, options...)
}

// A store that closes is asked nothing more: etcd in this process would end it in a panic.
func TestNothingAsksAClosedStore(t *testing.T) {
	options := load(t)
	kv := &lateKV{}
	s := startOver(t, options, &kv.KV, kv)
	kv.client.Store(s.store.Client())
	stop(t, s)
	if n := kv.late.Load(); n > 0 {
		t.Errorf("asked %d times", n)
	}
}

// heldKV holds the read of the name of the topic "held" until the server waits for its parts, whatever becomes of the request, and
// for a moment more, in which a store would close that does not wait.
type heldKV struct {
	clientv3.KV
	asked, stopping chan struct{}
	client          *clientv3.Client
	late            atomic.Bool
}

func (k *heldKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if !strings.HasSuffix(key, "/held") {
		return k.KV.Get(ctx, key, options...)
	}
	close(k.asked)
	<-k.stopping
	select {
	case <-k.client.Ctx().Done():
		k.late.Store(true)
	case <-time.After(time.Second):
	}
	return nil, errors.New("held")
}

// An HTTP request that is cut off at the stop has ended before the store closes.
func TestStoreOutlivesRequests(t *testing.T) {
	options := load(t)
	kv := &heldKV{asked: make(chan struct{}), stopping: make(chan struct{})}
	s := startOver(t, options, &kv.KV, kv)
	kv.client = s.store.Client()
	stopParts, once := s.stop, sync.Once{}
	s.stop = func() {
		stopParts()
		once.Do(func() { close(kv.stopping) })
	}
	cutOff := make(chan error, 1)
	go func() {
		answer, err := http.Get(s.WebURL() + "/admin/v2/persistent/public/default/held/partitions")
		if err == nil {
			err = answer.Body.Close()
		}
		cutOff <- err
	}()
	<-kv.asked
	stop(t, s)
	if err := <-cutOff; err == nil {
		t.Error("the request was answered")
	}
	if kv.late.Load() {
		t.Error("the store was closed while it was asked")
	}
	http.DefaultClient.CloseIdleConnections()
}
