package conn

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// pipe writes frames in the background: the server need not read all of them.
func (p *peer) pipe(frames ...[]byte) {
	go func() {
		if _, err := p.network.Write(bytes.Join(frames, nil)); err != nil && !isClosed(err) {
			p.t.Errorf("write: %v", err)
		}
	}()
	synctest.Wait()
}

// pipeSends pipes count SENDs of 40 KiB to producer 1.
func (p *peer) pipeSends(count int) {
	p.t.Helper()
	frame := encodeFrame(p.t, sendCommand(1, 0), payloadOf(p.t, strings.Repeat("x", 40<<10)))
	var all [][]byte
	for range count {
		all = append(all, frame)
	}
	p.pipe(all...)
}

// Above MaxPendingSendBytes the connection is not read until sends are answered; one send is always taken.
func TestMaxPendingSendBytes(t *testing.T) {
	for _, test := range []struct{ limit, atOnce int }{{100 << 10, 2}, {10 << 10, 1}, {1 << 20, 5}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{MaxPendingSendBytes: test.limit})
			b.topics.send = func(*fakeProducer, Send) {}
			p := b.producingPeer(t)
			p.pipeSends(5)
			producer := b.topics.producer(0)
			for answered := range 5 {
				if got, want := len(producer.sent()), min(5, answered+test.atOnce); got != want {
					t.Fatalf("limit %d: %d sends are served after %d answers, want %d", test.limit, got, answered, want)
				}
				producer.client.Receipt(0, 0, 5, 0)
				p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
				synctest.Wait()
			}
			p.alive()
		})
	}
}

// Above MaxPublishBytes only a connection that has no unanswered send is read; the others go on as soon as there is room,
// whether sends are answered or their connection ends.
func TestMaxPublishBytes(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{MaxPublishBytes: 100 << 10})
			b.topics.send = func(*fakeProducer, Send) {}
			first, second := b.producingPeer(t), b.producingPeer(t)
			if ends {
				first.pipeSends(2) // a connection that waits at a bound does not see its peer go
			} else {
				first.pipeSends(3)
			}
			second.pipeSends(2)
			served := func(i, want int) {
				t.Helper()
				if got := len(b.topics.producer(i).sent()); got != want {
					t.Errorf("%d sends of connection %d are served, want %d", got, i, want)
				}
			}
			served(0, 2)
			served(1, 1)
			if ends {
				first.network.Close()
				synctest.Wait()
				served(1, 2)
				return
			}
			for range 2 {
				b.topics.producer(0).client.Receipt(0, 0, 5, 0)
				first.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			}
			synctest.Wait()
			b.topics.producer(0).client.Receipt(0, 0, 5, 0)
			first.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			synctest.Wait()
			served(0, 3)
			served(1, 2)
		})
	}
}

// The frame being read counts, and no longer than it is there.
func TestFrameBeingReadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		frame := encodeFrame(t, addPartitionCommand(1, 0, 0, "t/"+strings.Repeat("x", 64<<10)), nil)
		p.pipe(frame[:100])
		if got := b.publishing.held.Load(); got != int64(len(frame)-4) {
			t.Errorf("%d bytes are held, want %d", got, len(frame)-4)
		}
		p.pipe(frame[100:])
		p.want(pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE)
		synctest.Wait()
		if got := b.publishing.held.Load(); got != 0 {
			t.Errorf("%d bytes are held in the end", got)
		}
	})
}

// What connections announce that have not logged in holds no producer up.
func TestStrangersHoldNoProducerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxPublishBytes: 100 << 10})
		b.topics.send = func(*fakeProducer, Send) {}
		for range 3 {
			b.newPeer(t).pipe([]byte{0, 16, 0, 0, 0, 0}) // a frame of a mebibyte
		}
		b.producingPeer(t).pipeSends(2)
		if got := len(b.topics.producer(0).sent()); got != 2 {
			t.Errorf("%d sends are served, want 2", got)
		}
	})
}

// Above MaxPendingRequestBytes the connection is not read until requests are answered; one request is always taken. A
// participant counts for more than its name.
func TestMaxPendingRequestBytes(t *testing.T) {
	large := make([]string, 100)
	for i := range large {
		large[i] = "persistent://public/default/" + strings.Repeat("x", 400)
	}
	small := make([]string, 400)
	for i := range small {
		small[i] = "t"
	}
	for name, test := range map[string]struct {
		topics        []string
		limit, atOnce int
	}{
		"large names":         {large, 130 << 10, 2},
		"many names":          {small, 130 << 10, 2},
		"larger than allowed": {large, 1 << 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{MaxPendingRequestBytes: test.limit})
				var waiting held
				b.coordinators.add = func(_ txn.ID, _ []txn.Participant, done func(error)) { waiting.hold(done) }
				p := b.connectedPeer(t)
				frame := encodeFrame(t, addPartitionCommand(1, 0, 0, test.topics...), nil)
				p.pipe(frame, frame, frame, frame)
				for answered := range 4 {
					if got, want := waiting.count(), min(4, answered+test.atOnce); got != want {
						t.Fatalf("%d requests are served after %d answers, want %d", got, answered, want)
					}
					waiting.at(answered)(nil)
					p.want(pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE)
					synctest.Wait()
				}
			})
		})
	}
}

// Requests that get a goroutine each are fewer at once than those that wait in a queue.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxPendingRequestBytes: 10 * (taskCost + 100)})
		started, release := make(chan struct{}, 100), make(chan struct{})
		b.topics.partitions = func(topicname.Name, bool) (int, error) {
			started <- struct{}{}
			<-release
			return 0, nil
		}
		p := b.connectedPeer(t)
		frame := encodeFrame(t, metadataCommand(1, "t"), nil)
		p.pipe(bytes.Repeat(frame, 50))
		if got := len(started); got != 10 {
			t.Errorf("%d requests are served at once", got)
		}
		close(release)
		for range 50 {
			p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE)
		}
	})
}
