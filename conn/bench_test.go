package conn

import (
	"context"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// BenchmarkNewTxn pipelines NEW_TXN over a real socket to a coordinator that answers at once: the cost of the edge alone.
func BenchmarkNewTxn(b *testing.B) {
	const inFlight = 256
	s := newBench(b, Options{})
	p := dial(b, s.listen(b))
	p.handshake()
	frame := encodeFrame(b, newTxnCommand(1, 0), nil)
	var burst []byte
	for range inFlight {
		burst = append(burst, frame...)
	}
	b.ReportAllocs()
	done := 0
	for b.Loop() {
		if done%inFlight == 0 {
			p.write(burst)
		}
		if _, err := p.frames.ReadFrame(); err != nil {
			b.Fatal(err)
		}
		done++
	}
	b.StopTimer()
	for ; done%inFlight != 0; done++ {
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
	}
}

// BenchmarkSend pipelines SEND of 100 bytes to a topic that answers at once.
func BenchmarkSend(b *testing.B) {
	const inFlight = 256
	s := newBench(b, Options{})
	s.topics.produce = func(_ context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
		return echo{client}, ProducerInfo{Name: "echo", LastSequenceID: -1, Ready: true}, nil
	}
	p := dial(b, s.listen(b))
	p.handshake()
	p.send(producerCommand(1, 1, "t"))
	p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
	frame := encodeFrame(b, sendCommand(1, 0), payloadOf(b, string(make([]byte, 100))))
	var burst []byte
	for range inFlight {
		burst = append(burst, frame...)
	}
	b.ReportAllocs()
	done := 0
	for b.Loop() {
		if done%inFlight == 0 {
			p.write(burst)
		}
		if _, err := p.frames.ReadFrame(); err != nil {
			b.Fatal(err)
		}
		done++
	}
	b.StopTimer()
	for ; done%inFlight != 0; done++ {
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
	}
}

// echo is a producer whose topic keeps nothing.
type echo struct{ client ProducerClient }

func (e echo) Send(msg Send) {
	e.client.Receipt(msg.SequenceID, msg.HighestSequenceID, 5, msg.SequenceID)
}

func (echo) Again(done func(error)) { done(nil) }

func (echo) Close() {}

// BenchmarkMessage delivers messages of 100 bytes.
func BenchmarkMessage(b *testing.B) {
	s := newBench(b, Options{})
	p := dial(b, s.listen(b))
	p.handshake()
	p.send(subscribeCommand(1, 1, "t"))
	p.want(pulsarproto.BaseCommand_SUCCESS)
	client := s.topics.consumer(0).client
	payload := payloadOf(b, string(make([]byte, 100)))
	b.ReportAllocs()
	sent := uint64(0)
	received := uint64(0)
	for b.Loop() {
		for ; sent < received+256; sent++ {
			client.Message(Delivery{LedgerID: 5, EntryID: sent, Payload: payload})
		}
		if _, err := p.frames.ReadFrame(); err != nil {
			b.Fatal(err)
		}
		received++
	}
}
