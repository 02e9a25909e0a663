package conn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestProduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		success := &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_PRODUCER_SUCCESS.Enum(),
			ProducerSuccess: &pulsarproto.CommandProducerSuccess{
				RequestId:      proto.Uint64(1),
				ProducerName:   proto.String("fake-1"),
				LastSequenceId: proto.Int64(-1),
				SchemaVersion:  []byte{},
				ProducerReady:  proto.Bool(true),
			},
		}
		p.send(producerCommand(1, 7, "t"))
		p.wantCommand(success)
		p.send(producerCommand(2, 7, "t")) // a repeat gets the same answer, when the topic expects repeats of sends
		success.ProducerSuccess.RequestId = proto.Uint64(2)
		p.wantCommand(success)
		b.topics.agains = []error{txn.ErrNotReady}
		p.send(producerCommand(3, 7, "t"))
		p.wantError(3, pulsarproto.ServerError_ServiceNotReady)

		command := sendCommand(7, 3)
		command.Send.HighestSequenceId = proto.Uint64(5)
		command.Send.TxnidLeastBits = proto.Uint64(0)
		p.sendPayload(command, payloadOf(t, "half a transaction id"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_SEND_RECEIPT.Enum(),
			SendReceipt: &pulsarproto.CommandSendReceipt{
				ProducerId:        proto.Uint64(7),
				SequenceId:        proto.Uint64(3),
				HighestSequenceId: proto.Uint64(5),
				MessageId:         &pulsarproto.MessageIdData{LedgerId: proto.Uint64(5), EntryId: proto.Uint64(0)},
			},
		})
		command.Send.TxnidMostBits = proto.Uint64(0)
		command.Send.IsChunk = proto.Bool(true)
		p.sendPayload(command, payloadOf(t, "transaction (0,0)"))
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
		sent := b.topics.producer(0).sent()
		if sent[0].InTxn || sent[0].HighestSequenceID != 5 || sent[0].NumMessages != 1 || sent[0].IsChunk {
			t.Errorf("first send %+v", sent[0])
		}
		if !sent[1].InTxn || sent[1].Txn != (txn.ID{}) || !sent[1].IsChunk {
			t.Errorf("second send %+v", sent[1])
		}

		p.send(closeProducerCommand(3, 7))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.send(closeProducerCommand(4, 7), closeProducerCommand(5, 99)) // unknown ids are closed already
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.want(pulsarproto.BaseCommand_SUCCESS)
		if got := b.topics.producer(0).closed(); got != 1 {
			t.Errorf("closed %d times", got)
		}
		p.sendPayload(sendCommand(7, 4), payloadOf(t, "x"))
		p.wantClosed()
	})
}

func TestProduceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.topics.produce = func(context.Context, ProducerClient) (Producer, ProducerInfo, error) {
			return nil, ProducerInfo{}, cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "name is taken")
		}
		p := b.connectedPeer(t)
		p.send(producerCommand(1, 1, "t"))
		p.wantError(1, pulsarproto.ServerError_ProducerBusy)
		b.topics.produce = nil
		p.send(producerCommand(2, 1, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		p.send(producerCommand(3, 2, "foo://a/b/c"))
		p.wantError(3, pulsarproto.ServerError_InvalidTopicName)
	})
}

// While a producer is being created, another of its id has to wait, a SEND to it closes the connection, and closing it
// cancels the creation.
func TestProduceSlowly(t *testing.T) {
	slow := func(b *bench) chan struct{} {
		release := make(chan struct{})
		b.topics.produce = func(ctx context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
			select {
			case <-release:
				return b.topics.newProducer(client), ProducerInfo{Name: "fake-1", LastSequenceID: -1, Ready: true}, nil
			case <-ctx.Done():
				return nil, ProducerInfo{}, ctx.Err()
			}
		}
		return release
	}
	t.Run("same id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			release := slow(b)
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"), producerCommand(2, 1, "t"))
			p.wantError(2, pulsarproto.ServerError_ServiceNotReady)
			close(release)
			p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		})
	})
	t.Run("send", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			slow(b)
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"))
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			p.wantClosed()
			synctest.Wait()
			if got := b.badInputs(); len(got) != 1 || got[0] != BadProducerNotReady {
				t.Errorf("bad input %q", got)
			}
		})
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			slow(b)
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"), closeProducerCommand(2, 1))
			p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
			p.want(pulsarproto.BaseCommand_SUCCESS)
			b.topics.produce = nil
			p.send(producerCommand(3, 1, "t"))
			p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		})
	})
	t.Run("attached although closed meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			release := make(chan struct{})
			b.topics.produce = func(_ context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
				<-release
				return b.topics.newProducer(client), ProducerInfo{}, nil
			}
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"), closeProducerCommand(2, 1))
			synctest.Wait()
			close(release)
			p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
			p.want(pulsarproto.BaseCommand_SUCCESS)
			if got := b.topics.producer(0).closed(); got != 1 {
				t.Errorf("closed %d times", got)
			}
		})
	})
	t.Run("disconnected meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			b.topics.produce = func(_ context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
				producer := b.topics.newProducer(client)
				client.Disconnect()
				return producer, ProducerInfo{}, nil
			}
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"))
			p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
			p.wantNothing()
			synctest.Wait()
			if got := b.topics.producer(0).closed(); got != 1 {
				t.Errorf("closed %d times", got)
			}
		})
	})
	t.Run("connection lost meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			slow(b)
			p := b.connectedPeer(t)
			p.send(producerCommand(1, 1, "t"))
			synctest.Wait()
			p.network.Close()
			synctest.Wait()
			if got := b.connections(); got != 0 {
				t.Errorf("%d connections", got)
			}
		})
	})
}

// A producer that waits to become exclusive gets two answers with one request id, both with last_sequence_id; the request does
// not count while it waits, and the second answer may be a refusal.
func TestProduceInTwoAnswers(t *testing.T) {
	waiting := func(t *testing.T, b *bench) (p *peer, ready chan error) {
		ready = make(chan error, 1)
		b.topics.produce = func(ctx context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
			client.Queued(ProducerInfo{Name: "fake-1", LastSequenceID: 4})
			select {
			case err := <-ready:
				return b.topics.newProducer(client), ProducerInfo{Name: "fake-1", LastSequenceID: 5, TopicEpoch: 3, HasTopicEpoch: true, Ready: true}, err
			case <-ctx.Done():
				return nil, ProducerInfo{}, ctx.Err()
			}
		}
		p = b.connectedPeer(t)
		p.send(producerCommand(1, 7, "t"))
		first := p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS).GetProducerSuccess()
		if first.GetProducerReady() || first.GetRequestId() != 1 || first.GetLastSequenceId() != 4 || first.GetProducerName() != "fake-1" {
			t.Fatalf("first answer %v", first)
		}
		return p, ready
	}
	t.Run("ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, ready := waiting(t, newBench(t, Options{MaxPendingRequests: 1}))
			p.send(producerCommand(2, 7, "t"))
			p.wantError(2, pulsarproto.ServerError_ServiceNotReady)
			ready <- nil
			second := p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS).GetProducerSuccess()
			if !second.GetProducerReady() || second.GetRequestId() != 1 || second.GetLastSequenceId() != 5 || second.GetTopicEpoch() != 3 {
				t.Fatalf("second answer %v", second)
			}
			p.sendPayload(sendCommand(7, 6), payloadOf(t, "x"))
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
		})
	})
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, ready := waiting(t, newBench(t, Options{MaxPendingRequests: 1}))
			ready <- cnx.Refuse(pulsarproto.ServerError_ProducerFenced, "fenced out")
			p.wantError(1, pulsarproto.ServerError_ProducerFenced)
			p.wantNothing()
		})
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := waiting(t, newBench(t, Options{MaxPendingRequests: 1}))
			p.send(closeProducerCommand(2, 7))
			p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
			p.want(pulsarproto.BaseCommand_SUCCESS)
		})
	})
}

// A producer whose topic refuses a message goes on, and the refusal keeps its place among the receipts.
func TestSendError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.topics.send = func(p *fakeProducer, msg Send) {
			if msg.SequenceID == 1 {
				p.client.SendError(msg.HighestSequenceID, errors.New("no such transaction"))
				return
			}
			p.client.Receipt(msg.SequenceID, msg.HighestSequenceID, 5, msg.SequenceID)
		}
		p := b.producingPeer(t)
		for i := range uint64(3) {
			p.sendPayload(sendCommand(1, i), payloadOf(t, "x"))
		}
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
		if got := p.want(pulsarproto.BaseCommand_SEND_ERROR).GetSendError(); got.GetSequenceId() != 1 || got.GetMessage() != "no such transaction" {
			t.Errorf("refusal %v", got)
		}
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
	})
}

// CLOSE_PRODUCER is answered behind the receipts of what was sent before it: a client takes what has none by then for not stored.
func TestCloseProducerWaitsForReceipts(t *testing.T) {
	closing := func(t *testing.T) (*bench, *peer, *fakeProducer) {
		b := newBench(t, Options{KeepAlive: -1})
		b.topics.send = func(*fakeProducer, Send) {}
		p := b.producingPeer(t)
		for i := range 2 {
			p.sendPayload(sendCommand(1, uint64(i)), payloadOf(t, "x"))
		}
		p.send(closeProducerCommand(2, 1))
		p.wantNothing()
		producer := b.topics.producer(0)
		if producer.closed() != 0 {
			t.Error("closed before its sends are answered")
		}
		return b, p, producer
	}
	t.Run("that come", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, p, producer := closing(t)
			producer.client.Receipt(0, 0, 5, 0)
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			p.wantNothing()
			producer.client.Receipt(1, 1, 5, 1)
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			p.want(pulsarproto.BaseCommand_SUCCESS)
			if producer.closed() != 1 {
				t.Errorf("closed %d times", producer.closed())
			}
		})
	})
	t.Run("until the topic disconnects it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, p, producer := closing(t)
			producer.client.Disconnect()
			p.want(pulsarproto.BaseCommand_SUCCESS)
			p.alive()
		})
	})
	t.Run("until the connection ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, p, producer := closing(t)
			p.network.Close()
			synctest.Wait()
			if producer.closed() != 1 || b.connections() != 0 {
				t.Errorf("closed %d times, %d connections are left", producer.closed(), b.connections())
			}
		})
	})
}
