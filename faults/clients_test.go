package faults

import (
	"encoding/binary"
	"log/slog"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// official is a client of the official Go library.
func (f *fixture) official() pulsar.Client {
	f.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: "pulsar://" + f.addr(), OperationTimeout: waitTime, Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	return client
}

// keyed is a message with a key, or a tombstone if content is empty.
type keyed struct{ key, content string }

// sendKeyed sends one message that is not in a batch.
func (f *fixture) sendKeyed(producer *wiretopic.Producer, sequence uint64, m keyed, id *txn.ID) {
	f.Helper()
	metadata := &pulsarproto.MessageMetadata{SequenceId: &sequence}
	if m.key != "" {
		metadata.PartitionKey = &m.key
	}
	if m.content == "" {
		metadata.NullValue = proto.Bool(true)
	}
	_, err := producer.SendAs(f.ctx, metadata, m.content, id)
	f.want("SEND "+m.content, err, success)
}

// sendBatch sends messages in one batch.
func (f *fixture) sendBatch(producer *wiretopic.Producer, sequence uint64, messages ...keyed) *pulsarproto.MessageIdData {
	f.Helper()
	var content []byte
	for _, m := range messages {
		single := &pulsarproto.SingleMessageMetadata{PayloadSize: proto.Int32(int32(len(m.content)))}
		if m.key != "" {
			single.PartitionKey = &m.key
		}
		if m.content == "" {
			single.NullValue = proto.Bool(true)
		}
		encoded, err := proto.Marshal(single)
		if err != nil {
			f.Fatal(err)
		}
		content = binary.BigEndian.AppendUint32(content, uint32(len(encoded)))
		content = append(append(content, encoded...), m.content...)
	}
	position, err := producer.SendAs(f.ctx, &pulsarproto.MessageMetadata{
		SequenceId: &sequence, NumMessagesInBatch: proto.Int32(int32(len(messages))),
	}, string(content), nil)
	f.want("SEND of a batch", err, success)
	return position
}

// subscribeAs subscribes with a type of its own, from the earliest message.
func (f *fixture) subscribeAs(client *wiretopic.Client, topic, subscription string, kind pulsarproto.CommandSubscribe_SubType) *wiretopic.Consumer {
	f.Helper()
	consumer, err := client.SubscribeAs(f.ctx, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &subscription, SubType: kind.Enum(),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	})
	if err != nil {
		f.Fatalf("subscribe %s to %s: %v", subscription, topic, err)
	}
	return consumer
}

// ackCumulatively acknowledges everything up to the positions in a transaction.
func (f *fixture) ackCumulatively(consumer *wiretopic.Consumer, id *txn.ID, positions ...*pulsarproto.MessageIdData) error {
	return consumer.AckAs(f.ctx, &pulsarproto.CommandAck{
		AckType: pulsarproto.CommandAck_Cumulative.Enum(), MessageId: positions,
	}, id)
}

// ackIndexes acknowledges the messages of a batch whose bits are not in rest.
func (f *fixture) ackIndexes(consumer *wiretopic.Consumer, position *pulsarproto.MessageIdData, rest int64, id *txn.ID) error {
	return consumer.Ack(f.ctx, &pulsarproto.MessageIdData{
		LedgerId: position.LedgerId, EntryId: position.EntryId, AckSet: []int64{rest},
	}, id)
}
