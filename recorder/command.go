package recorder

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// assignTopic is the partitioned topic whose partitions stand for the coordinators.
const assignTopic = "persistent://pulsar/system/transaction_coordinator_assign"

const (
	commit = pulsarproto.TxnAction_COMMIT
	abort  = pulsarproto.TxnAction_ABORT
)

func u64(value uint64) *uint64 { return &value }

// encode returns the bytes of command, required fields or not: scenarios leave some out on purpose.
func encode(command proto.Message) []byte {
	bytes, err := proto.MarshalOptions{AllowPartial: true}.Marshal(command)
	if err != nil {
		panic(fmt.Sprintf("encode command: %v", err))
	}
	return bytes
}

// encodeFrame puts the two sizes before an encoded command, which may be none.
func encodeFrame(command []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(command)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(command)))
	return append(frame, command...)
}

// encodeSend is a SEND with its payload part.
func encodeSend(command *pulsarproto.BaseCommand, metadata *pulsarproto.MessageMetadata, content []byte) []byte {
	payload, err := pulsarproto.AppendPayload(nil, metadata, content)
	if err != nil {
		panic(err)
	}
	frame, err := pulsarproto.AppendCommandHead(nil, command, len(payload))
	if err != nil {
		panic(err)
	}
	return append(frame, payload...)
}

func connectCommand(version int32) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: &pulsarproto.CommandConnect{
		ClientVersion: proto.String("recorder"), ProtocolVersion: proto.Int32(version)}}
}

func lookupCommand(topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_LOOKUP.Enum(), LookupTopic: &pulsarproto.CommandLookupTopic{Topic: &topic}}
}

func partitionsCommand(topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PARTITIONED_METADATA.Enum(),
		PartitionMetadata: &pulsarproto.CommandPartitionedTopicMetadata{Topic: &topic}}
}

func tcConnectCommand(tc uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST.Enum(),
		TcClientConnectRequest: &pulsarproto.CommandTcClientConnectRequest{TcId: &tc}}
}

// newTxnCommand leaves out what is nil. The ttl is in milliseconds.
func newTxnCommand(ttl, tc *uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{TxnTtlSeconds: ttl, TcId: tc}}
}

func addPartitionsCommand(id txn.ID, topics ...string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN.Enum(), AddPartitionToTxn: &pulsarproto.CommandAddPartitionToTxn{
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Partitions: topics}}
}

// addSubscriptionsCommand takes pairs of topic and subscription.
func addSubscriptionsCommand(id txn.ID, pairs ...string) *pulsarproto.BaseCommand {
	c := &pulsarproto.CommandAddSubscriptionToTxn{TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least}
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Subscription = append(c.Subscription, &pulsarproto.Subscription{Topic: &pairs[i], Subscription: &pairs[i+1]})
	}
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN.Enum(), AddSubscriptionToTxn: c}
}

// endTxnCommand leaves the action out if it is nil, as the next two do with action and low water mark.
func endTxnCommand(id txn.ID, action *pulsarproto.TxnAction) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN.Enum(), EndTxn: &pulsarproto.CommandEndTxn{
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: action}}
}

func endOnPartitionCommand(id txn.ID, topic string, action *pulsarproto.TxnAction, lowWaterMark *uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(), EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Topic: &topic, TxnAction: action, TxnidLeastBitsOfLowWatermark: lowWaterMark}}
}

func endOnSubscriptionCommand(id txn.ID, topic, subscription string, action *pulsarproto.TxnAction, lowWaterMark *uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION.Enum(), EndTxnOnSubscription: &pulsarproto.CommandEndTxnOnSubscription{
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Subscription: &pulsarproto.Subscription{Topic: &topic, Subscription: &subscription},
		TxnAction: action, TxnidLeastBitsOfLowWatermark: lowWaterMark}}
}

// ackCommand is a plain acknowledgement if id is nil.
func ackCommand(consumer uint64, ackType pulsarproto.CommandAck_AckType, id *txn.ID, messages ...*pulsarproto.MessageIdData) *pulsarproto.BaseCommand {
	ack := &pulsarproto.CommandAck{ConsumerId: &consumer, AckType: &ackType, MessageId: messages}
	if id != nil {
		ack.TxnidMostBits, ack.TxnidLeastBits = &id.Most, &id.Least
	}
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_ACK.Enum(), Ack: ack}
}

func closeConsumerCommand(consumer uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CLOSE_CONSUMER.Enum(), CloseConsumer: &pulsarproto.CommandCloseConsumer{ConsumerId: &consumer}}
}

func unsubscribeCommand(consumer uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_UNSUBSCRIBE.Enum(), Unsubscribe: &pulsarproto.CommandUnsubscribe{ConsumerId: &consumer}}
}

// batchIndex is a position with the bits that are not acknowledged; a batch size of 0 is left out.
func batchIndex(id *pulsarproto.MessageIdData, ackSet int64, batchSize int32) *pulsarproto.MessageIdData {
	index := proto.Clone(id).(*pulsarproto.MessageIdData)
	index.AckSet = []int64{ackSet}
	if batchSize > 0 {
		index.BatchSize = &batchSize
	}
	return index
}

// withUnknown adds fields to the body of command that the schema may not have, or not like this.
func withUnknown(command *pulsarproto.BaseCommand, fields []byte) *pulsarproto.BaseCommand {
	bodyOf(command).SetUnknown(fields)
	return command
}

func stringField(number int, text string) []byte {
	return append([]byte{byte(number<<3 | 2), byte(len(text))}, text...)
}

func varintField(number int, value byte) []byte { return []byte{byte(number << 3), value} }
