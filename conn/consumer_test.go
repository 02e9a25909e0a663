package conn

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// consumingPeer returns a peer with a consumer of id 1.
func (b *bench) consumingPeer(t testing.TB) *peer {
	t.Helper()
	p := b.connectedPeer(t)
	p.send(subscribeCommand(1, 1, "t"))
	p.want(pulsarproto.BaseCommand_SUCCESS)
	return p
}

// TestReachedEndOfTopic: only clients that know the command are sent it; the Go client would close its connection (FC-34).
func TestReachedEndOfTopic(t *testing.T) {
	for version, told := range map[string]bool{"Pulsar-Java-v4.0.7": true, "Pulsar-Go-0.21.0": false, "Pulsar-CPP-v3.7.0": false, "": false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.newPeer(t)
			connect := connectCommand(21)
			connect.Connect.ClientVersion = &version
			p.send(connect)
			p.want(pulsarproto.BaseCommand_CONNECTED)
			p.send(subscribeCommand(1, 1, "t"))
			p.want(pulsarproto.BaseCommand_SUCCESS)
			client := b.topics.consumer(0).client
			client.ReachedEndOfTopic()
			if !told {
				p.wantNothing()
			} else if id := p.want(pulsarproto.BaseCommand_REACHED_END_OF_TOPIC).GetReachedEndOfTopic().GetConsumerId(); id != 1 {
				t.Errorf("consumer %d", id)
			}
			if got := client.Peer(); got.ClientVersion != version || got.Address == "" {
				t.Errorf("peer %+v", got)
			}
		})
	}
}

func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.consumingPeer(t)
		consumer := b.topics.consumer(0)
		p.send(subscribeCommand(2, 1, "t")) // a repeat succeeds
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.send(subscribeCommand(3, 2, "foo://a/b/c"))
		p.wantError(3, pulsarproto.ServerError_InvalidTopicName)

		p.send(flowCommand(1, 10), flowCommand(1, 0), flowCommand(99, 5))
		p.alive()
		if got := read(&consumer.mu, &consumer.permits); got != 10 {
			t.Errorf("%d permits", got)
		}

		payload := payloadOf(t, "content")
		consumer.client.Message(Delivery{
			LedgerID: 5, EntryID: 6, Partition: -1, RedeliveryCount: 2, AckSet: []int64{-2},
			ConsumerEpoch: 4, HasConsumerEpoch: true, Payload: payload,
		})
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_MESSAGE.Enum(),
			Message: &pulsarproto.CommandMessage{
				ConsumerId:      proto.Uint64(1),
				MessageId:       &pulsarproto.MessageIdData{LedgerId: proto.Uint64(5), EntryId: proto.Uint64(6)},
				RedeliveryCount: proto.Uint32(2),
				AckSet:          []int64{-2},
				ConsumerEpoch:   proto.Uint64(4),
			},
		})
		if !bytes.Equal(p.payload, payload) {
			t.Errorf("payload %x, want %x", p.payload, payload)
		}

		// A payload that is not copied into the outbox stands between two frames that are.
		large := payloadOf(t, string(bytes.Repeat([]byte{7}, 2*copyLimit)))
		consumer.client.Message(Delivery{EntryID: 7, Partition: 0, Payload: payload})
		consumer.client.Message(Delivery{EntryID: 8, Partition: 0, Payload: large})
		consumer.client.Message(Delivery{EntryID: 9, Partition: 0, Payload: payload})
		for i, want := range [][]byte{payload, large, payload} {
			got := p.want(pulsarproto.BaseCommand_MESSAGE).GetMessage()
			if got.GetMessageId().GetEntryId() != uint64(7+i) || !bytes.Equal(p.payload, want) {
				t.Errorf("message %v with %d bytes, want entry %d with %d", got, len(p.payload), 7+i, len(want))
			}
		}

		// FC-31: what was sent without a checksum is delivered with one.
		consumer.client.Message(Delivery{EntryID: 10, Payload: payload[6:]})
		p.want(pulsarproto.BaseCommand_MESSAGE)
		if !bytes.Equal(p.payload, payload) {
			t.Errorf("payload %x, want %x", p.payload, payload)
		}

		p.send(&pulsarproto.BaseCommand{
			Type:                            pulsarproto.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES.Enum(),
			RedeliverUnacknowledgedMessages: &pulsarproto.CommandRedeliverUnacknowledgedMessages{ConsumerId: proto.Uint64(1)},
		})
		p.alive()
		if got := read(&consumer.mu, &consumer.redeliver); got != 1 {
			t.Errorf("%d redeliveries", got)
		}

		p.send(lastMessageIDCommand(4, 1))
		last := p.want(pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID_RESPONSE).GetGetLastMessageIdResponse()
		if last.GetLastMessageId().GetEntryId() != 9 || last.GetConsumerMarkDeletePosition().GetEntryId() != 3 {
			t.Errorf("last message id %v", last)
		}

		stats := func(requestID, consumerID uint64) *pulsarproto.CommandConsumerStatsResponse {
			p.send(&pulsarproto.BaseCommand{
				Type:          pulsarproto.BaseCommand_CONSUMER_STATS.Enum(),
				ConsumerStats: &pulsarproto.CommandConsumerStats{RequestId: &requestID, ConsumerId: &consumerID},
			})
			return p.want(pulsarproto.BaseCommand_CONSUMER_STATS_RESPONSE).GetConsumerStatsResponse()
		}
		if got := stats(41, 1); got.GetRequestId() != 41 || got.GetMsgBacklog() != 3 || got.ErrorCode != nil {
			t.Errorf("stats %v", got)
		}
		if got := stats(42, 99); got.GetRequestId() != 42 || got.GetErrorCode() != pulsarproto.ServerError_ConsumerNotFound || got.GetErrorMessage() == "" {
			t.Errorf("stats of an unknown consumer %v", got)
		}

		command := unsubscribeCommand(5, 1)
		command.Unsubscribe.Force = proto.Bool(true)
		p.send(command)
		p.want(pulsarproto.BaseCommand_SUCCESS)
		if !read(&consumer.mu, &consumer.force) {
			t.Error("unsubscribed without force")
		}

		p.send(closeConsumerCommand(6, 1), closeConsumerCommand(7, 1))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.want(pulsarproto.BaseCommand_SUCCESS)
		if got := read(&consumer.mu, &consumer.closes); got != 1 {
			t.Errorf("closed %d times", got)
		}
		consumer.client.Message(Delivery{Payload: payload}) // too late
		p.wantNothing()
	})
}

func TestAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.consumingPeer(t)
		consumer := b.topics.consumer(0)
		p.send(ackCommand(nil, 1, 5, 6))
		p.wantNothing()
		p.send(ackCommand(proto.Uint64(2), 1, 5, 6))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type:        pulsarproto.BaseCommand_ACK_RESPONSE.Enum(),
			AckResponse: &pulsarproto.CommandAckResponse{ConsumerId: proto.Uint64(1), RequestId: proto.Uint64(2)},
		})
		if got := read(&consumer.mu, &consumer.acks); got != 2 {
			t.Errorf("%d acks", got)
		}

		consumer.ack = func(done func(error)) { done(txn.ErrConflict) }
		p.send(ackCommand(nil, 1, 5, 6))
		p.wantNothing()
		p.send(ackCommand(proto.Uint64(3), 1, 5, 6))
		refused := p.want(pulsarproto.BaseCommand_ACK_RESPONSE).GetAckResponse()
		if refused.GetError() != pulsarproto.ServerError_TransactionConflict || refused.GetMessage() == "" {
			t.Errorf("refused with %v", refused)
		}

		// O-9: an unknown consumer's ACK with a request id is answered, and with a text.
		p.send(ackCommand(nil, 99, 5, 6), ackCommand(proto.Uint64(4), 99, 5, 6))
		unknown := p.want(pulsarproto.BaseCommand_ACK_RESPONSE).GetAckResponse()
		if unknown.GetError() != pulsarproto.ServerError_ConsumerNotFound || unknown.GetMessage() == "" || unknown.GetRequestId() != 4 {
			t.Errorf("unknown consumer: %v", unknown)
		}
		p.wantNothing()
	})
}

func TestUnknownConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.consumingPeer(t)
		p.send(seekCommand(1, 99), unsubscribeCommand(2, 99), lastMessageIDCommand(3, 99), seekCommand(4, 1))
		for requestID := uint64(1); requestID <= 4; requestID++ {
			p.wantError(requestID, pulsarproto.ServerError_MetadataError)
		}
	})
}

// The consumers of a subscription that is reset are told so before the answer, and nothing comes between.
func TestSeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.consumingPeer(t)
		command := seekCommand(2, 1)
		command.Seek.MessagePublishTime = proto.Uint64(0)
		p.send(command)
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_CLOSE_CONSUMER.Enum(),
			CloseConsumer: &pulsarproto.CommandCloseConsumer{
				ConsumerId: proto.Uint64(1),
				RequestId:  proto.Uint64(1<<64 - 1),
			},
		})
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.send(subscribeCommand(3, 1, "t"))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		b.topics.consumer(0).client.Message(Delivery{Payload: payloadOf(t, "of the consumer before")})
		p.wantNothing()
	})
}

func TestSubscribeSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.topics.subscribe = func(ctx context.Context, _ ConsumerClient) (Consumer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p := b.connectedPeer(t)
		p.send(subscribeCommand(1, 1, "t"), flowCommand(1, 10), subscribeCommand(2, 1, "t"))
		p.wantError(2, pulsarproto.ServerError_ServiceNotReady)
		p.send(closeConsumerCommand(3, 1))
		p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
		p.want(pulsarproto.BaseCommand_SUCCESS)

		b.topics.subscribe = func(_ context.Context, client ConsumerClient) (Consumer, error) {
			consumer := b.topics.newConsumer(client)
			client.Disconnect()
			return consumer, nil
		}
		p.send(subscribeCommand(4, 1, "t"))
		p.wantError(4, pulsarproto.ServerError_ServiceNotReady)
		synctest.Wait()
		if got := read(&b.topics.consumer(0).mu, &b.topics.consumer(0).closes); got != 1 {
			t.Errorf("closed %d times", got)
		}
	})
}
