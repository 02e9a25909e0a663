package conn

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// However many are asked for, a connection has one list at work and the server maxListings; one that ends gives way.
func TestListingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		var atWork atomic.Int32
		release := make(chan struct{})
		b.topics.list = func(string) ([]string, error) {
			atWork.Add(1)
			defer atWork.Add(-1)
			<-release
			return []string{"persistent://public/default/a"}, nil
		}
		frame := encodeFrame(t, listCommand(1, "public/default"), nil)
		peers := make([]*peer, 6)
		for i := range peers {
			peers[i] = b.connectedPeer(t)
			peers[i].pipe(bytes.Repeat(frame, 20))
			if got, want := atWork.Load(), int32(min(i+1, maxListings)); got != want {
				t.Errorf("%d lists at work for %d connections, want %d", got, i+1, want)
			}
		}
		peers[4].network.Close()
		synctest.Wait()
		if got := b.connections(); got != 5 {
			t.Errorf("%d connections: one whose lists wait does not end", got)
		}
		close(release)
		for _, i := range []int{0, 1, 2, 3, 5} {
			for range 20 {
				peers[i].want(pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE)
			}
		}
	})
}

// No list is made for a peer that has not read the ones before, and that does not hold up others.
func TestListingWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 10 << 10, WriteTimeout: time.Hour})
		var made atomic.Int32
		b.topics.list = func(string) ([]string, error) {
			made.Add(1)
			return []string{strings.Repeat("x", 8<<10)}, nil
		}
		frame := encodeFrame(t, listCommand(1, "public/default"), nil)
		for range maxListings {
			b.connectedPeer(t).pipe(bytes.Repeat(frame, 20))
		}
		if got := made.Load(); got != 2*maxListings {
			t.Errorf("%d lists are made for %d peers that do not read", got, maxListings)
		}
		p := b.connectedPeer(t)
		p.pipe(bytes.Repeat(frame, 20))
		for range 20 {
			p.want(pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE)
		}
	})
}
