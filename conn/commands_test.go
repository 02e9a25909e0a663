package conn

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

func connectCommand(version int32) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_CONNECT.Enum(),
		Connect: &pulsarproto.CommandConnect{
			ClientVersion:   proto.String("test"),
			ProtocolVersion: proto.Int32(version),
		},
	}
}

func pingCommand() *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PING.Enum(), Ping: &pulsarproto.CommandPing{}}
}

func pongCommand() *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PONG.Enum(), Pong: &pulsarproto.CommandPong{}}
}

func newTxnCommand(requestID, tc uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_NEW_TXN.Enum(),
		NewTxn: &pulsarproto.CommandNewTxn{
			RequestId:     &requestID,
			TcId:          &tc,
			TxnTtlSeconds: proto.Uint64(60000),
		},
	}
}

func addPartitionCommand(requestID, most, least uint64, topics ...string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN.Enum(),
		AddPartitionToTxn: &pulsarproto.CommandAddPartitionToTxn{
			RequestId:      &requestID,
			TxnidMostBits:  &most,
			TxnidLeastBits: &least,
			Partitions:     topics,
		},
	}
}

func addSubscriptionCommand(requestID, most, least uint64, topic, subscription string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN.Enum(),
		AddSubscriptionToTxn: &pulsarproto.CommandAddSubscriptionToTxn{
			RequestId:      &requestID,
			TxnidMostBits:  &most,
			TxnidLeastBits: &least,
			Subscription:   []*pulsarproto.Subscription{{Topic: &topic, Subscription: &subscription}},
		},
	}
}

func endTxnCommand(requestID, most, least uint64, action pulsarproto.TxnAction) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN.Enum(),
		EndTxn: &pulsarproto.CommandEndTxn{
			RequestId:      &requestID,
			TxnidMostBits:  &most,
			TxnidLeastBits: &least,
			TxnAction:      &action,
		},
	}
}

func tcConnectCommand(requestID, tc uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:                   pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST.Enum(),
		TcClientConnectRequest: &pulsarproto.CommandTcClientConnectRequest{RequestId: &requestID, TcId: &tc},
	}
}

func endOnPartitionCommand(requestID, most, least uint64, topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(),
		EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
			RequestId:                    &requestID,
			TxnidMostBits:                &most,
			TxnidLeastBits:               &least,
			Topic:                        &topic,
			TxnAction:                    pulsarproto.TxnAction_COMMIT.Enum(),
			TxnidLeastBitsOfLowWatermark: proto.Uint64(7),
		},
	}
}

func endOnSubscriptionCommand(requestID, most, least uint64, topic, subscription string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION.Enum(),
		EndTxnOnSubscription: &pulsarproto.CommandEndTxnOnSubscription{
			RequestId:                    &requestID,
			TxnidMostBits:                &most,
			TxnidLeastBits:               &least,
			Subscription:                 &pulsarproto.Subscription{Topic: &topic, Subscription: &subscription},
			TxnAction:                    pulsarproto.TxnAction_ABORT.Enum(),
			TxnidLeastBitsOfLowWatermark: proto.Uint64(7),
		},
	}
}

func metadataCommand(requestID uint64, topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_PARTITIONED_METADATA.Enum(),
		PartitionMetadata: &pulsarproto.CommandPartitionedTopicMetadata{
			RequestId: &requestID,
			Topic:     &topic,
		},
	}
}

func lookupCommand(requestID uint64, topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:        pulsarproto.BaseCommand_LOOKUP.Enum(),
		LookupTopic: &pulsarproto.CommandLookupTopic{RequestId: &requestID, Topic: &topic},
	}
}

func producerCommand(requestID, producerID uint64, topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:     pulsarproto.BaseCommand_PRODUCER.Enum(),
		Producer: &pulsarproto.CommandProducer{RequestId: &requestID, ProducerId: &producerID, Topic: &topic},
	}
}

func closeProducerCommand(requestID, producerID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:          pulsarproto.BaseCommand_CLOSE_PRODUCER.Enum(),
		CloseProducer: &pulsarproto.CommandCloseProducer{RequestId: &requestID, ProducerId: &producerID},
	}
}

func sendCommand(producerID, sequenceID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_SEND.Enum(),
		Send: &pulsarproto.CommandSend{ProducerId: &producerID, SequenceId: &sequenceID},
	}
}

func subscribeCommand(requestID, consumerID uint64, topic string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_SUBSCRIBE.Enum(),
		Subscribe: &pulsarproto.CommandSubscribe{
			RequestId:    &requestID,
			ConsumerId:   &consumerID,
			Topic:        &topic,
			Subscription: proto.String("sub"),
			SubType:      pulsarproto.CommandSubscribe_Exclusive.Enum(),
		},
	}
}

func closeConsumerCommand(requestID, consumerID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:          pulsarproto.BaseCommand_CLOSE_CONSUMER.Enum(),
		CloseConsumer: &pulsarproto.CommandCloseConsumer{RequestId: &requestID, ConsumerId: &consumerID},
	}
}

func flowCommand(consumerID uint64, permits uint32) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_FLOW.Enum(),
		Flow: &pulsarproto.CommandFlow{ConsumerId: &consumerID, MessagePermits: &permits},
	}
}

// ackCommand has no request id if requestID is nil.
func ackCommand(requestID *uint64, consumerID, ledgerID, entryID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ACK.Enum(),
		Ack: &pulsarproto.CommandAck{
			RequestId:  requestID,
			ConsumerId: &consumerID,
			AckType:    pulsarproto.CommandAck_Individual.Enum(),
			MessageId:  []*pulsarproto.MessageIdData{{LedgerId: &ledgerID, EntryId: &entryID}},
		},
	}
}

func seekCommand(requestID, consumerID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_SEEK.Enum(),
		Seek: &pulsarproto.CommandSeek{RequestId: &requestID, ConsumerId: &consumerID},
	}
}

func unsubscribeCommand(requestID, consumerID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:        pulsarproto.BaseCommand_UNSUBSCRIBE.Enum(),
		Unsubscribe: &pulsarproto.CommandUnsubscribe{RequestId: &requestID, ConsumerId: &consumerID},
	}
}

func lastMessageIDCommand(requestID, consumerID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:             pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID.Enum(),
		GetLastMessageId: &pulsarproto.CommandGetLastMessageId{RequestId: &requestID, ConsumerId: &consumerID},
	}
}

// payloadOf returns a payload part with a checksum.
func payloadOf(t testing.TB, content string) []byte {
	t.Helper()
	payload, err := pulsarproto.AppendPayload(nil, &pulsarproto.MessageMetadata{
		ProducerName: proto.String("p"),
		SequenceId:   proto.Uint64(0),
		PublishTime:  proto.Uint64(1),
	}, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func listCommand(requestID uint64, namespace string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE.Enum(),
		GetTopicsOfNamespace: &pulsarproto.CommandGetTopicsOfNamespace{
			RequestId: &requestID, Namespace: &namespace,
		},
	}
}
