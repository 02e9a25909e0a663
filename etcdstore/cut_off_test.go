package etcdstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
)

// isolation stands between members and cuts one off from the others, not from its clients.
type isolation struct {
	mu    sync.Mutex
	cut   string // address of the member, as it listens; empty: none
	from  []byte // header of its requests
	conns map[net.Conn]struct{}
}

func (i *isolation) link(t *testing.T) func(string) (string, error) {
	return func(listening string) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go i.pass(c, listening)
			}
		}()
		return l.Addr().String(), nil
	}
}

func (i *isolation) pass(c net.Conn, to string) {
	defer c.Close()
	var head []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(head, []byte("\r\n\r\n")) {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		head = append(head, buffer[:n]...)
	}
	i.mu.Lock()
	refused := i.cut != "" && (to == i.cut || bytes.Contains(bytes.ToLower(head), i.from))
	i.conns[c] = struct{}{}
	i.mu.Unlock()
	defer func() { i.mu.Lock(); delete(i.conns, c); i.mu.Unlock() }()
	if refused {
		return
	}
	d, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer d.Close()
	if _, err := d.Write(head); err != nil {
		return
	}
	go func() { io.Copy(c, d); c.Close() }()
	io.Copy(d, c)
}

func (i *isolation) isolate(listening string, id uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut, i.from = listening, fmt.Appendf(nil, "x-server-from: %x\r\n", id)
	for c := range i.conns {
		c.Close()
	}
}

// A member that is cut off from the others answers for itself and stores nothing: it is to be left out as one that hangs.
func TestMemberThatIsCutOff(t *testing.T) {
	i := &isolation{conns: map[net.Conn]struct{}{}}
	var listens []string
	link := i.link(t)
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3, PeerLink: func(l string) (string, error) {
		listens = append(listens, l)
		return link(l)
	}})
	store := connect(t, optionsFor(cluster.Endpoints()...))
	leader, err := cluster.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	if cluster.Members[at] == leader {
		at = 1
	}
	cut := cluster.Members[at]
	status, err := cut.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.isolate(listens[at], status.Header.MemberId)
	endpoint := "http://" + cut.Address()
	eventually(t, "left out", func() bool { return !slices.Contains(store.Client().Endpoints(), endpoint) })
	for range 9 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := store.Client().Put(ctx, "key", "value")
		cancel()
		if err != nil {
			t.Errorf("a write has an unknown result although two of three members are well: %v", err)
		}
	}
	if away := store.Away(); away != "" {
		t.Errorf("the store is away: %s", away)
	}
}
