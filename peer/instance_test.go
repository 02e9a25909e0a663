package peer

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testSecret = Secret("the secret of this cluster, 32 b.")

// instance is another instance of the cluster, as far as its port goes.
type instance struct {
	t        *testing.T
	listener net.Listener
	id       string
	// version is what CONNECTED tells.
	version string
	// serve answers a command, in a goroutine of its own. Nil: nothing is answered.
	serve func(*door, *pulsarproto.BaseCommand)
	// deaf answers no PING.
	deaf bool

	mu    sync.Mutex // guards the rest
	doors []*door
	tasks sync.WaitGroup
}

// door is one connection at the instance.
type door struct {
	socket  net.Conn
	connect *pulsarproto.CommandConnect
	caller  cnx.Caller
	ended   chan struct{}

	mu sync.Mutex // guards writes
}

func newInstance(t *testing.T, id string) *instance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{t: t, listener: listener, id: id, version: "pulsar-tc test"}
	i.tasks.Go(i.accept)
	t.Cleanup(i.stop)
	return i
}

func (i *instance) info() cluster.Instance {
	return cluster.Instance{ID: i.id, ServiceURL: "pulsar://" + i.listener.Addr().String()}
}

func (i *instance) stop() {
	_ = i.listener.Close()
	for _, d := range i.connections() {
		_ = d.socket.Close()
	}
	i.tasks.Wait()
}

func (i *instance) connections() []*door {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]*door(nil), i.doors...)
}

func (i *instance) accept() {
	for {
		socket, err := i.listener.Accept()
		if err != nil {
			return
		}
		d := &door{socket: socket, ended: make(chan struct{})}
		i.mu.Lock()
		i.doors = append(i.doors, d)
		i.mu.Unlock()
		i.tasks.Go(func() {
			defer close(d.ended)
			i.read(d)
		})
	}
}

func (i *instance) read(d *door) {
	defer func() { _ = d.socket.Close() }()
	reader := pulsarproto.NewFrameReader(bufio.NewReader(d.socket), 1<<20)
	for {
		frame, err := reader.ReadFrame()
		if err != nil {
			return
		}
		var command pulsarproto.BaseCommand
		if err := pulsarproto.DecodeCommand(&command, frame.Command); err != nil {
			i.t.Errorf("instance %s: %v", i.id, err)
			return
		}
		switch command.GetType() {
		case pulsarproto.BaseCommand_CONNECT:
			if !i.greet(d, command.GetConnect()) {
				return
			}
		case pulsarproto.BaseCommand_PING:
			if !i.deaf {
				d.send(pulsarproto.AppendPong(nil))
			}
		default:
			if i.serve != nil {
				kept := proto.CloneOf(&command)
				i.tasks.Go(func() { i.serve(d, kept) })
			}
		}
	}
}

func (i *instance) greet(d *door, connect *pulsarproto.CommandConnect) bool {
	caller, is, err := Door{Self: i.id, Secret: testSecret}.Admit(connect)
	if err != nil || !is {
		d.send(pulsarproto.AppendConnectError(nil, pulsarproto.ServerError_AuthenticationError, "you are no instance"))
		return false
	}
	d.connect, d.caller = connect, caller
	d.send(pulsarproto.AppendConnected(nil, pulsarproto.Connected{ServerVersion: i.version, ProtocolVersion: 21, MaxMessageSize: 1 << 20}))
	return true
}

func (d *door) send(frame []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.socket.Write(frame) // a test that needs it waits for the answer
}

// newPool returns a pool of instance "a".
func newPool(t *testing.T, change func(*Options)) *Pool {
	t.Helper()
	options := Options{Self: "a", Secret: testSecret, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t))}
	if change != nil {
		change(&options)
	}
	pool := New(options)
	t.Cleanup(pool.Close)
	return pool
}

// wait returns what the test waits for, or fails.
func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// until fails if condition does not come true.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("not seen: " + what)
		}
		time.Sleep(time.Millisecond)
	}
}
