package conn

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A client that does not read its answers is not read either, and is closed when the write timeout has passed.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 4 << 10, WriteTimeout: 10 * time.Second, KeepAlive: time.Minute})
		other := b.connectedPeer(t)
		p := b.connectedPeer(t)
		frame := encodeFrame(t, newTxnCommand(1, 0), nil)
		start := time.Now()
		sent := 0
		for {
			if _, err := p.network.Write(frame); err != nil {
				break
			}
			sent++
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("closed after %s", got)
		}
		synctest.Wait()
		if got := b.lastClosed(); got != ClosedNotReading {
			t.Errorf("closed for %q", got)
		}
		answer := len(encodeFrame(t, &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_NEW_TXN_RESPONSE.Enum(),
			NewTxnResponse: &pulsarproto.CommandNewTxnResponse{RequestId: proto.Uint64(1),
				TxnidMostBits: proto.Uint64(0), TxnidLeastBits: proto.Uint64(0)},
		}, nil))
		// What was read is bounded by twice the high-water mark and the buffers of one read.
		if limit := 2*(4<<10)/answer + 2*commandBuffer/len(frame); sent > limit {
			t.Errorf("%d requests were read, want at most %d", sent, limit)
		}
		other.alive()
	})
}

// A client that reads slowly is not closed, and gets everything.
func TestClientThatReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 1 << 10, WriteTimeout: 10 * time.Second})
		p := b.connectedPeer(t)
		const requests = 300
		go func() {
			for i := range uint64(requests) {
				if _, err := p.network.Write(encodeFrame(t, newTxnCommand(i, 0), nil)); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		}()
		for i := range uint64(requests) {
			if i%100 == 0 {
				time.Sleep(9 * time.Second)
			}
			if got := p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE).GetNewTxnResponse().GetRequestId(); got != i {
				t.Fatalf("answer %d, want %d", got, i)
			}
		}
	})
}

// At MaxPendingRequests the connection is not read until one is answered.
func TestMaxPendingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxPendingRequests: 10})
		var waiting held
		b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { waiting.hold(done) }
		p := b.connectedPeer(t)
		for i := range uint64(11) {
			p.send(endTxnCommand(i, 0, i, 0))
		}
		go func() {
			if _, err := p.network.Write(encodeFrame(t, endTxnCommand(11, 0, 11, 0), nil)); err != nil {
				t.Errorf("write: %v", err)
			}
		}()
		synctest.Wait()
		if got := waiting.count(); got != 10 {
			t.Fatalf("%d requests are served", got)
		}
		waiting.at(4)(nil)
		p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
		synctest.Wait()
		if got := waiting.count(); got != 11 {
			t.Fatalf("%d requests are served after an answer", got)
		}
		for i, done := range waiting.all() {
			if i != 4 {
				done(nil)
				p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
			}
		}
		synctest.Wait()
		if got := waiting.count(); got != 12 {
			t.Errorf("%d requests are served in the end", got)
		}
		waiting.at(11)(nil)
		p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
	})
}

// At MaxPendingSends the connection is not read until one is answered or its producer is gone.
func TestMaxPendingSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxPendingSends: 3})
		b.topics.send = func(*fakeProducer, Send) {}
		p := b.producingPeer(t)
		p.send(producerCommand(2, 2, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		payload := payloadOf(t, "x")
		for i := range uint64(4) {
			p.sendPayload(sendCommand(1, i), payload)
		}
		first := b.topics.producer(0)
		synctest.Wait()
		if got := len(first.sent()); got != 3 {
			t.Fatalf("%d sends are served", got)
		}
		first.client.Receipt(0, 0, 5, 0)
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
		synctest.Wait()
		if got := len(first.sent()); got != 4 {
			t.Fatalf("%d sends are served after a receipt", got)
		}
		p.sendPayload(sendCommand(2, 0), payload)
		second := b.topics.producer(1)
		synctest.Wait()
		if got := len(second.sent()); got != 0 {
			t.Fatalf("%d sends of the other producer are served", got)
		}
		first.client.Disconnect()
		p.want(pulsarproto.BaseCommand_CLOSE_PRODUCER)
		synctest.Wait()
		if got := len(second.sent()); got != 1 {
			t.Errorf("%d sends of the other producer are served after the first is gone", got)
		}
	})
}

// A consumer is Full while the peer does not read, and is told once when there is room again, each time.
func TestConsumerFullAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 64 << 10})
		p := b.consumingPeer(t)
		consumer := b.topics.consumer(0)
		payload := payloadOf(t, string(bytes.Repeat([]byte{7}, 10<<10)))
		for round := 1; round <= 2; round++ {
			sent := 0
			for !consumer.client.Full() {
				consumer.client.Message(Delivery{EntryID: uint64(sent), Payload: payload})
				sent++
			}
			if sent < 6 || sent > 8 {
				t.Errorf("full after %d messages of 10 KiB", sent)
			}
			if !consumer.client.Full() {
				t.Error("not full any more without a read")
			}
			for i := range sent {
				if got := p.want(pulsarproto.BaseCommand_MESSAGE).GetMessage().GetMessageId().GetEntryId(); got != uint64(i) {
					t.Fatalf("entry %d, want %d", got, i)
				}
			}
			synctest.Wait()
			if got := read(&consumer.mu, &consumer.resumes); got != round {
				t.Errorf("resumed %d times in round %d", got, round)
			}
		}
		if consumer.client.Full() {
			t.Error("full although everything is read")
		}
	})
}

// Above MaxOutgoing the connection is closed, whoever filled it.
func TestMaxOutgoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 8 << 10, MaxOutgoing: 64 << 10})
		b.consumingPeer(t)
		consumer := b.topics.consumer(0)
		payload := payloadOf(t, string(bytes.Repeat([]byte{7}, 10<<10)))
		for range 10 {
			consumer.client.Message(Delivery{Payload: payload})
		}
		synctest.Wait()
		if got := b.lastClosed(); got != ClosedNotReading {
			t.Errorf("closed for %q", got)
		}
		if got := read(&consumer.mu, &consumer.closes); got != 1 {
			t.Errorf("the consumer was closed %d times", got)
		}
	})
}

// Frames larger than a chunk of a write arrive whole and in order.
func TestLargeFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.consumingPeer(t)
		consumer := b.topics.consumer(0)
		var payloads [][]byte
		for i, size := range []int{writeChunk - 100, 3*writeChunk + 17, 1, copyLimit, 5 << 20} {
			payloads = append(payloads, payloadOf(t, string(bytes.Repeat([]byte{byte(i)}, size))))
		}
		for i, payload := range payloads {
			consumer.client.Message(Delivery{EntryID: uint64(i), Payload: payload})
		}
		for i, payload := range payloads {
			got := p.want(pulsarproto.BaseCommand_MESSAGE).GetMessage().GetMessageId().GetEntryId()
			if got != uint64(i) || !bytes.Equal(p.payload, payload) {
				t.Fatalf("entry %d with %d bytes, want %d with %d", got, len(p.payload), i, len(payload))
			}
		}
	})
}
