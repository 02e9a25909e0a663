package pulsarproto

import (
	"bufio"
	"bytes"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

const longText = "The transaction with this txdID `(3,7)`not found, and a text of more than 127 bytes, whose length takes two bytes, " +
	"so that the body around it moves by one"

// replyCases holds every Append function with what protobuf's encoding of the same answer is.
var replyCases = []struct {
	name   string
	append func(dst []byte) []byte
	want   *BaseCommand
}{
	{"Connected", func(dst []byte) []byte {
		return AppendConnected(dst, Connected{"pulsar-tc", 20, 5 << 20, &FeatureFlags{SupportsTopicWatchers: new(false)}})
	}, &BaseCommand{Type: BaseCommand_CONNECTED.Enum(), Connected: &CommandConnected{
		ServerVersion: new("pulsar-tc"), ProtocolVersion: new(int32(20)), MaxMessageSize: new(int32(5 << 20)),
		FeatureFlags: &FeatureFlags{SupportsTopicWatchers: new(false)},
	}}},
	{"AuthChallenge", func(dst []byte) []byte { return AppendAuthChallenge(dst, "pulsar-tc", "token", 21) },
		&BaseCommand{Type: BaseCommand_AUTH_CHALLENGE.Enum(), AuthChallenge: &CommandAuthChallenge{
			ServerVersion: new("pulsar-tc"), ProtocolVersion: new(int32(21)),
			Challenge: &AuthData{AuthMethodName: new("token"), AuthData: []byte("PulsarAuthRefresh")}}}},
	{"Ping", AppendPing, &BaseCommand{Type: BaseCommand_PING.Enum(), Ping: &CommandPing{}}},
	{"Pong", AppendPong, &BaseCommand{Type: BaseCommand_PONG.Enum(), Pong: &CommandPong{}}},
	{"Success", func(dst []byte) []byte { return AppendSuccess(dst, 300) },
		&BaseCommand{Type: BaseCommand_SUCCESS.Enum(), Success: &CommandSuccess{RequestId: new(uint64(300))}}},
	{"Error", func(dst []byte) []byte { return AppendError(dst, 0, ServerError_NotAllowedError, longText) },
		&BaseCommand{Type: BaseCommand_ERROR.Enum(), Error: &CommandError{
			RequestId: new(uint64(0)), Error: ServerError_NotAllowedError.Enum(), Message: new(longText)}}},
	{"ConnectError", func(dst []byte) []byte { return AppendConnectError(dst, ServerError_AuthenticationError, "no") },
		&BaseCommand{Type: BaseCommand_ERROR.Enum(), Error: &CommandError{
			RequestId: new(uint64(math.MaxUint64)), Error: ServerError_AuthenticationError.Enum(), Message: new("no")}}},
	{"PartitionedMetadata", func(dst []byte) []byte { return AppendPartitionedMetadata(dst, 4, 0) },
		&BaseCommand{Type: BaseCommand_PARTITIONED_METADATA_RESPONSE.Enum(),
			PartitionMetadataResponse: &CommandPartitionedTopicMetadataResponse{
				RequestId: new(uint64(4)), Partitions: new(uint32(0)), Response: CommandPartitionedTopicMetadataResponse_Success.Enum()}}},
	{"PartitionedMetadataError", func(dst []byte) []byte {
		return AppendPartitionedMetadataError(dst, 4, ServerError_TopicNotFound, "")
	}, &BaseCommand{Type: BaseCommand_PARTITIONED_METADATA_RESPONSE.Enum(),
		PartitionMetadataResponse: &CommandPartitionedTopicMetadataResponse{
			RequestId: new(uint64(4)), Response: CommandPartitionedTopicMetadataResponse_Failed.Enum(),
			Error: ServerError_TopicNotFound.Enum(), Message: new("TopicNotFound")}}},
	{"LookupConnect", func(dst []byte) []byte {
		return AppendLookupResponse(dst, 5, LookupAnswer{ServiceURL: "pulsar://a:6650", Authoritative: true})
	}, &BaseCommand{Type: BaseCommand_LOOKUP_RESPONSE.Enum(), LookupTopicResponse: &CommandLookupTopicResponse{
		RequestId: new(uint64(5)), BrokerServiceUrl: new("pulsar://a:6650"), Response: CommandLookupTopicResponse_Connect.Enum(),
		Authoritative: new(true), ProxyThroughServiceUrl: new(false)}}},
	{"LookupRedirect", func(dst []byte) []byte {
		return AppendLookupResponse(dst, 5, LookupAnswer{ServiceURLTLS: "pulsar+ssl://a:6651", Redirect: true, ProxyThroughServiceURL: true})
	}, &BaseCommand{Type: BaseCommand_LOOKUP_RESPONSE.Enum(), LookupTopicResponse: &CommandLookupTopicResponse{
		RequestId: new(uint64(5)), BrokerServiceUrlTls: new("pulsar+ssl://a:6651"), Response: CommandLookupTopicResponse_Redirect.Enum(),
		Authoritative: new(false), ProxyThroughServiceUrl: new(true)}}},
	{"LookupError", func(dst []byte) []byte { return AppendLookupError(dst, 5, ServerError_ServiceNotReady, "loading") },
		&BaseCommand{Type: BaseCommand_LOOKUP_RESPONSE.Enum(), LookupTopicResponse: &CommandLookupTopicResponse{
			RequestId: new(uint64(5)), Response: CommandLookupTopicResponse_Failed.Enum(),
			Error: ServerError_ServiceNotReady.Enum(), Message: new("loading")}}},
	{"TopicsOfNamespace", func(dst []byte) []byte {
		return AppendTopicsOfNamespace(dst, 6, TopicsOfNamespace{Topics: []string{"persistent://a/b/c", "persistent://a/b/d"}, Hash: "0a"})
	},
		&BaseCommand{Type: BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE.Enum(),
			GetTopicsOfNamespaceResponse: &CommandGetTopicsOfNamespaceResponse{RequestId: new(uint64(6)),
				Topics: []string{"persistent://a/b/c", "persistent://a/b/d"}, TopicsHash: new("0a"), Filtered: new(false),
				Changed: new(true)}}},
	{"TopicsOfNamespaceUnchanged", func(dst []byte) []byte {
		return AppendTopicsOfNamespace(dst, 6, TopicsOfNamespace{Hash: "0a", Filtered: true, Unchanged: true})
	},
		&BaseCommand{Type: BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE.Enum(),
			GetTopicsOfNamespaceResponse: &CommandGetTopicsOfNamespaceResponse{RequestId: new(uint64(6)),
				TopicsHash: new("0a"), Filtered: new(true), Changed: new(false)}}},
	{"WatchTopicListSuccess", func(dst []byte) []byte {
		return AppendWatchTopicListSuccess(dst, 6, 7, []string{"persistent://a/b/c"}, "0a")
	},
		&BaseCommand{Type: BaseCommand_WATCH_TOPIC_LIST_SUCCESS.Enum(), WatchTopicListSuccess: &CommandWatchTopicListSuccess{
			RequestId: new(uint64(6)), WatcherId: new(uint64(7)), Topic: []string{"persistent://a/b/c"}, TopicsHash: new("0a")}}},
	{"WatchTopicUpdate", func(dst []byte) []byte { return AppendWatchTopicUpdate(dst, 7, []string{"n"}, []string{"d"}, "0a") },
		&BaseCommand{Type: BaseCommand_WATCH_TOPIC_UPDATE.Enum(), WatchTopicUpdate: &CommandWatchTopicUpdate{
			WatcherId: new(uint64(7)), NewTopics: []string{"n"}, DeletedTopics: []string{"d"}, TopicsHash: new("0a")}}},
	{"GetSchemaResponse", func(dst []byte) []byte {
		return AppendGetSchemaResponse(dst, 9, &Schema{Name: new("s"), SchemaData: []byte{}, Type: Schema_Json.Enum()}, []byte{0, 1})
	}, &BaseCommand{Type: BaseCommand_GET_SCHEMA_RESPONSE.Enum(), GetSchemaResponse: &CommandGetSchemaResponse{
		RequestId: new(uint64(9)), Schema: &Schema{Name: new("s"), SchemaData: []byte{}, Type: Schema_Json.Enum()}, SchemaVersion: []byte{0, 1}}}},
	{"GetSchemaError", func(dst []byte) []byte { return AppendGetSchemaError(dst, 9, ServerError_TopicNotFound, "") },
		&BaseCommand{Type: BaseCommand_GET_SCHEMA_RESPONSE.Enum(), GetSchemaResponse: &CommandGetSchemaResponse{
			RequestId: new(uint64(9)), ErrorCode: ServerError_TopicNotFound.Enum(), ErrorMessage: new("TopicNotFound")}}},
	{"GetOrCreateSchemaError", func(dst []byte) []byte {
		return AppendGetOrCreateSchemaError(dst, 9, ServerError_IncompatibleSchema, "x")
	}, &BaseCommand{Type: BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE.Enum(), GetOrCreateSchemaResponse: &CommandGetOrCreateSchemaResponse{
		RequestId: new(uint64(9)), ErrorCode: ServerError_IncompatibleSchema.Enum(), ErrorMessage: new("x")}}},
	{"ProducerSuccess", func(dst []byte) []byte {
		return AppendProducerSuccess(dst, ProducerSuccess{RequestID: 7, ProducerName: "p-0", LastSequenceID: -1, Ready: true})
	}, &BaseCommand{Type: BaseCommand_PRODUCER_SUCCESS.Enum(), ProducerSuccess: &CommandProducerSuccess{
		RequestId: new(uint64(7)), ProducerName: new("p-0"), LastSequenceId: new(int64(-1)), SchemaVersion: []byte{}, ProducerReady: new(true)}}},
	{"ProducerSuccessWaiting", func(dst []byte) []byte {
		return AppendProducerSuccess(dst, ProducerSuccess{RequestID: 7, ProducerName: "p-0", LastSequenceID: 9,
			SchemaVersion: []byte{0, 1}, TopicEpoch: 0, HasTopicEpoch: true})
	}, &BaseCommand{Type: BaseCommand_PRODUCER_SUCCESS.Enum(), ProducerSuccess: &CommandProducerSuccess{
		RequestId: new(uint64(7)), ProducerName: new("p-0"), LastSequenceId: new(int64(9)), SchemaVersion: []byte{0, 1},
		TopicEpoch: new(uint64(0)), ProducerReady: new(false)}}},
	{"SendReceipt", func(dst []byte) []byte { return AppendSendReceipt(dst, SendReceipt{1, 300, 301, 12, 70000}) },
		&BaseCommand{Type: BaseCommand_SEND_RECEIPT.Enum(), SendReceipt: &CommandSendReceipt{
			ProducerId: new(uint64(1)), SequenceId: new(uint64(300)), HighestSequenceId: new(uint64(301)),
			MessageId: &MessageIdData{LedgerId: new(uint64(12)), EntryId: new(uint64(70000))}}}},
	{"SendReceiptDuplicate", func(dst []byte) []byte {
		return AppendSendReceipt(dst, SendReceipt{1, 0, 0, math.MaxUint64, math.MaxUint64})
	}, &BaseCommand{Type: BaseCommand_SEND_RECEIPT.Enum(), SendReceipt: &CommandSendReceipt{
		ProducerId: new(uint64(1)), SequenceId: new(uint64(0)), HighestSequenceId: new(uint64(0)),
		MessageId: &MessageIdData{LedgerId: new(uint64(math.MaxUint64)), EntryId: new(uint64(math.MaxUint64))}}}},
	{"SendError", func(dst []byte) []byte { return AppendSendError(dst, 1, 2, ServerError_ChecksumError, "bad") },
		&BaseCommand{Type: BaseCommand_SEND_ERROR.Enum(), SendError: &CommandSendError{
			ProducerId: new(uint64(1)), SequenceId: new(uint64(2)), Error: ServerError_ChecksumError.Enum(), Message: new("bad")}}},
	{"CloseProducer", func(dst []byte) []byte { return AppendCloseProducer(dst, 8) },
		&BaseCommand{Type: BaseCommand_CLOSE_PRODUCER.Enum(), CloseProducer: &CommandCloseProducer{
			ProducerId: new(uint64(8)), RequestId: new(uint64(math.MaxUint64))}}},
	{"CloseConsumer", func(dst []byte) []byte { return AppendCloseConsumer(dst, 8) },
		&BaseCommand{Type: BaseCommand_CLOSE_CONSUMER.Enum(), CloseConsumer: &CommandCloseConsumer{
			ConsumerId: new(uint64(8)), RequestId: new(uint64(math.MaxUint64))}}},
	{"AckResponse", func(dst []byte) []byte { return AppendAckResponse(dst, 8, 9) },
		&BaseCommand{Type: BaseCommand_ACK_RESPONSE.Enum(), AckResponse: &CommandAckResponse{
			ConsumerId: new(uint64(8)), RequestId: new(uint64(9))}}},
	{"AckError", func(dst []byte) []byte { return AppendAckError(dst, 8, 9, ServerError_TransactionConflict, "") },
		&BaseCommand{Type: BaseCommand_ACK_RESPONSE.Enum(), AckResponse: &CommandAckResponse{
			ConsumerId: new(uint64(8)), RequestId: new(uint64(9)),
			Error: ServerError_TransactionConflict.Enum(), Message: new("TransactionConflict")}}},
	{"ActiveConsumerChange", func(dst []byte) []byte { return AppendActiveConsumerChange(dst, 8, true) },
		&BaseCommand{Type: BaseCommand_ACTIVE_CONSUMER_CHANGE.Enum(), ActiveConsumerChange: &CommandActiveConsumerChange{
			ConsumerId: new(uint64(8)), IsActive: new(true)}}},
	{"ReachedEndOfTopic", func(dst []byte) []byte { return AppendReachedEndOfTopic(dst, 8) },
		&BaseCommand{Type: BaseCommand_REACHED_END_OF_TOPIC.Enum(), ReachedEndOfTopic: &CommandReachedEndOfTopic{ConsumerId: new(uint64(8))}}},
	{"GetLastMessageIdResponse", func(dst []byte) []byte {
		return AppendGetLastMessageIdResponse(dst, 9, messageID(1, math.MaxUint64), messageID(1, 4))
	}, &BaseCommand{Type: BaseCommand_GET_LAST_MESSAGE_ID_RESPONSE.Enum(), GetLastMessageIdResponse: &CommandGetLastMessageIdResponse{
		RequestId: new(uint64(9)), LastMessageId: messageID(1, math.MaxUint64), ConsumerMarkDeletePosition: messageID(1, 4)}}},
	{"TcClientConnectResponse", func(dst []byte) []byte { return AppendTcClientConnectResponse(dst, 1) },
		&BaseCommand{Type: BaseCommand_TC_CLIENT_CONNECT_RESPONSE.Enum(),
			TcClientConnectResponse: &CommandTcClientConnectResponse{RequestId: new(uint64(1))}}},
	{"GetOrCreateSchemaResponse", func(dst []byte) []byte { return AppendGetOrCreateSchemaResponse(dst, 9, nil) },
		&BaseCommand{Type: BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE.Enum(), GetOrCreateSchemaResponse: &CommandGetOrCreateSchemaResponse{
			RequestId: new(uint64(9)), SchemaVersion: []byte{}}}},
	{"NewTxnResponse", func(dst []byte) []byte { return AppendNewTxnResponse(dst, 2, 0, 0) },
		&BaseCommand{Type: BaseCommand_NEW_TXN_RESPONSE.Enum(), NewTxnResponse: &CommandNewTxnResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(0)), TxnidLeastBits: new(uint64(0))}}},
	{"NewTxnError", func(dst []byte) []byte {
		return AppendNewTxnError(dst, 2, 3, ServerError_TransactionCoordinatorNotFound, longText)
	}, &BaseCommand{Type: BaseCommand_NEW_TXN_RESPONSE.Enum(), NewTxnResponse: &CommandNewTxnResponse{
		RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)),
		Error: ServerError_TransactionCoordinatorNotFound.Enum(), Message: new(longText)}}},
	{"AddPartitionToTxnResponse", func(dst []byte) []byte { return AppendAddPartitionToTxnResponse(dst, 2, 3, 4) },
		&BaseCommand{Type: BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE.Enum(), AddPartitionToTxnResponse: &CommandAddPartitionToTxnResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4))}}},
	{"AddPartitionToTxnError", func(dst []byte) []byte {
		return AppendAddPartitionToTxnError(dst, 2, 0, 0, ServerError_UnknownError, "")
	}, &BaseCommand{Type: BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE.Enum(), AddPartitionToTxnResponse: &CommandAddPartitionToTxnResponse{
		RequestId: new(uint64(2)), TxnidMostBits: new(uint64(0)), TxnidLeastBits: new(uint64(0)),
		Error: ServerError_UnknownError.Enum(), Message: new("UnknownError")}}},
	{"AddSubscriptionToTxnResponse", func(dst []byte) []byte { return AppendAddSubscriptionToTxnResponse(dst, 2, 3, 4) },
		&BaseCommand{Type: BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE.Enum(),
			AddSubscriptionToTxnResponse: &CommandAddSubscriptionToTxnResponse{
				RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4))}}},
	{"AddSubscriptionToTxnError", func(dst []byte) []byte {
		return AppendAddSubscriptionToTxnError(dst, 2, 3, 4, ServerError_InvalidTxnStatus, "x")
	}, &BaseCommand{Type: BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE.Enum(),
		AddSubscriptionToTxnResponse: &CommandAddSubscriptionToTxnResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4)),
			Error: ServerError_InvalidTxnStatus.Enum(), Message: new("x")}}},
	{"EndTxnResponse", func(dst []byte) []byte { return AppendEndTxnResponse(dst, 2, 3, 1<<52) },
		&BaseCommand{Type: BaseCommand_END_TXN_RESPONSE.Enum(), EndTxnResponse: &CommandEndTxnResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(1 << 52))}}},
	{"EndTxnError", func(dst []byte) []byte {
		return AppendEndTxnError(dst, 2, 3, 4, ServerError_TransactionNotFound, longText)
	}, &BaseCommand{Type: BaseCommand_END_TXN_RESPONSE.Enum(), EndTxnResponse: &CommandEndTxnResponse{
		RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4)),
		Error: ServerError_TransactionNotFound.Enum(), Message: new(longText)}}},
	{"EndTxnOnPartitionResponse", func(dst []byte) []byte { return AppendEndTxnOnPartitionResponse(dst, 2, 3, 4) },
		&BaseCommand{Type: BaseCommand_END_TXN_ON_PARTITION_RESPONSE.Enum(), EndTxnOnPartitionResponse: &CommandEndTxnOnPartitionResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4))}}},
	{"EndTxnOnPartitionError", func(dst []byte) []byte {
		return AppendEndTxnOnPartitionError(dst, 2, 3, 4, ServerError_ServiceNotReady, "x")
	}, &BaseCommand{Type: BaseCommand_END_TXN_ON_PARTITION_RESPONSE.Enum(), EndTxnOnPartitionResponse: &CommandEndTxnOnPartitionResponse{
		RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4)),
		Error: ServerError_ServiceNotReady.Enum(), Message: new("x")}}},
	{"EndTxnOnSubscriptionResponse", func(dst []byte) []byte { return AppendEndTxnOnSubscriptionResponse(dst, 2, 3, 4) },
		&BaseCommand{Type: BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE.Enum(),
			EndTxnOnSubscriptionResponse: &CommandEndTxnOnSubscriptionResponse{
				RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4))}}},
	{"EndTxnOnSubscriptionError", func(dst []byte) []byte {
		return AppendEndTxnOnSubscriptionError(dst, 2, 3, 4, ServerError_ServiceNotReady, "x")
	}, &BaseCommand{Type: BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE.Enum(),
		EndTxnOnSubscriptionResponse: &CommandEndTxnOnSubscriptionResponse{
			RequestId: new(uint64(2)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(4)),
			Error: ServerError_ServiceNotReady.Enum(), Message: new("x")}}},
}

// messageCases holds AppendMessageHead alike.
var messageCases = []struct {
	name    string
	message Message
	want    *CommandMessage
}{
	{"plain", Message{ConsumerID: 1, LedgerID: 2, EntryID: 3, Partition: -1},
		&CommandMessage{ConsumerId: new(uint64(1)), MessageId: messageID(2, 3), RedeliveryCount: new(uint32(0))}},
	{"everything", Message{ConsumerID: 1, LedgerID: 2, EntryID: 3, Partition: 0, RedeliveryCount: 5,
		AckSet: []int64{-1, 0, 7, math.MinInt64, -2, -3, -4, -5, -6, -7, -8, -9, -10}, HasConsumerEpoch: true},
		&CommandMessage{ConsumerId: new(uint64(1)), RedeliveryCount: new(uint32(5)), ConsumerEpoch: new(uint64(0)),
			MessageId: &MessageIdData{LedgerId: new(uint64(2)), EntryId: new(uint64(3)), Partition: new(int32(0))},
			AckSet:    []int64{-1, 0, 7, math.MinInt64, -2, -3, -4, -5, -6, -7, -8, -9, -10}}},
}

func messageID(ledgerID, entryID uint64) *MessageIdData {
	return &MessageIdData{LedgerId: &ledgerID, EntryId: &entryID}
}

// TC-5's answers and all others are byte for byte what protobuf makes of them, behind whatever dst held.
func TestRepliesEqualProtobuf(t *testing.T) {
	for _, reply := range replyCases {
		t.Run(reply.name, func(t *testing.T) {
			want, err := AppendCommand([]byte("before"), reply.want)
			if err != nil {
				t.Fatal(err)
			}
			got := reply.append([]byte("before"))
			if !bytes.Equal(got, want) {
				t.Errorf("got  % x\nwant % x", got, want)
			}
		})
	}
}

func TestMessageHeadEqualsProtobuf(t *testing.T) {
	payload := []byte("stored bytes")
	for _, test := range messageCases {
		t.Run(test.name, func(t *testing.T) {
			command := &BaseCommand{Type: BaseCommand_MESSAGE.Enum(), Message: test.want}
			want, err := AppendCommandHead(nil, command, len(payload))
			if err != nil {
				t.Fatal(err)
			}
			got := AppendMessageHead(nil, test.message, len(payload))
			if !bytes.Equal(got, want) {
				t.Fatalf("got  % x\nwant % x", got, want)
			}
			frame, err := NewFrameReader(bufio.NewReader(bytes.NewReader(append(got, payload...))), 100).ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(frame.Payload, payload) {
				t.Errorf("payload %q, want %q", frame.Payload, payload)
			}
		})
	}
}

func TestRepliesDoNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, 1024)
	for name, write := range hotReplies {
		if allocations := testing.AllocsPerRun(100, func() { write(buffer) }); allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

// hotReplies are the answers that throughput rests on.
var hotReplies = map[string]func(dst []byte) []byte{
	"NewTxnResponse": func(dst []byte) []byte { return AppendNewTxnResponse(dst, 1<<20, 3, 1<<50) },
	"EndTxnResponse": func(dst []byte) []byte { return AppendEndTxnResponse(dst, 1<<20, 3, 1<<50) },
	"EndTxnError": func(dst []byte) []byte {
		return AppendEndTxnError(dst, 1<<20, 3, 1<<50, ServerError_TransactionNotFound, longText)
	},
	"SendReceipt": func(dst []byte) []byte { return AppendSendReceipt(dst, SendReceipt{1, 1 << 20, 1 << 20, 7, 1 << 30}) },
	"AckResponse": func(dst []byte) []byte { return AppendAckResponse(dst, 1, 1<<20) },
	"Message": func(dst []byte) []byte {
		return AppendMessageHead(dst, Message{ConsumerID: 1, LedgerID: 7, EntryID: 1 << 30, Partition: -1}, 100)
	},
}

func TestAppendCommandNamesAbsentField(t *testing.T) {
	_, err := AppendCommand(nil, &BaseCommand{Type: BaseCommand_SUCCESS.Enum(), Success: &CommandSuccess{}})
	if err == nil || !strings.Contains(err.Error(), "SUCCESS") || !strings.Contains(err.Error(), "request_id") {
		t.Errorf("error %v, want one that names SUCCESS and request_id", err)
	}
}

// Each answer decodes as a whole frame with the reader and decoder of the other side.
func TestRepliesDecode(t *testing.T) {
	for _, reply := range replyCases {
		frame, err := NewFrameReader(bufio.NewReader(bytes.NewReader(reply.append(nil))), 1<<20).ReadFrame()
		if err != nil {
			t.Fatalf("%s: %v", reply.name, err)
		}
		command := new(BaseCommand)
		if err := DecodeCommand(command, frame.Command); err != nil {
			t.Errorf("%s: %v", reply.name, err)
		}
		if frame.Payload != nil || !proto.Equal(command, reply.want) {
			t.Errorf("%s: got %v with payload %q, want %v", reply.name, command, frame.Payload, reply.want)
		}
	}
}
