package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Caller is who sent a command.
type Caller struct {
	Role  string
	Known bool // authentication gave a role
	Super bool // may act on everybody's transactions
}

// Coordinators is the transaction coordinator side of a connection. No method blocks. Every done is called exactly once,
// possibly before the method returns, from any goroutine, and must not block.
type Coordinators interface {
	// Count is the number of coordinators; 0 if transactions are off.
	Count() uint64
	// Connect answers TC_CLIENT_CONNECT_REQUEST for an existing tc. Waits while the coordinator loads, up to its own bound.
	// closed is called, at most once, when the coordinator's term ends: the connection must then be closed (TC-24).
	// Errors: txn.ErrNotReady.
	Connect(ctx context.Context, tc uint64, closed func(), done func(error))
	// NewTxn opens a transaction. named tells a request with client_name (even a blank one, which is refused).
	NewTxn(ctx context.Context, tc uint64, caller Caller, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error))
	// AddParticipants registers participants, all or none.
	AddParticipants(ctx context.Context, id txn.ID, caller Caller, participants []txn.Participant, done func(error))
	// EndTxn ends id; done is called when every participant applied it and the outcome is durable.
	EndTxn(ctx context.Context, id txn.ID, caller Caller, action txn.Action, named bool, done func(error))
}

// Topics is the produce and consume side of a connection. Errors are package txn's and topic's; servererror.go maps them.
type Topics interface {
	// PartitionCount returns the number of partitions of name; 0 for a plain topic, existing or not. create is
	// metadata_auto_creation_enabled: true lets a missing topic be made where settings allow it.
	PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error)
	// TopicsOfNamespace lists full topic names (partitions one by one), without internal ones.
	TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error)
	// Produce attaches a producer. cmd.Topic is already parsed as name. The ctx is the connection's.
	Produce(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandProducer, client ProducerClient) (Producer, ProducerInfo, error)
	// Subscribe attaches a consumer. Nothing is delivered before Flow.
	Subscribe(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandSubscribe, client ConsumerClient) (Consumer, error)
	// EndTxn applies END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION. done as in Coordinators.
	EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))
}

// ProducerInfo is what PRODUCER_SUCCESS tells.
type ProducerInfo struct {
	Name           string
	LastSequenceID int64 // -1: none
	SchemaVersion  []byte
	TopicEpoch     uint64
	HasTopicEpoch  bool
	Ready          bool
}

// Send is one SEND command. Payload is everything from the magic 0x0e01 on (or from the metadata size where a client sent no
// checksum), already verified; the topic owns it from the call on and stores it unchanged.
type Send struct {
	SequenceID        uint64
	HighestSequenceID uint64 // equals SequenceID if the command had none
	NumMessages       int32
	Txn               txn.ID
	InTxn             bool // both halves were present in the command
	IsChunk           bool
	Marker            bool
	Metadata          *pulsarproto.MessageMetadata
	Payload           []byte
}

// Producer is an attached producer. Methods are called from the connection's reader, one at a time.
type Producer interface {
	// Send stores a message. The answer comes through ProducerClient, in the order of the sends.
	Send(msg Send)
	// Close detaches the producer and returns when it is detached; sends in flight are still answered or dropped.
	Close()
}

// ProducerClient is the connection's end of a producer. Methods never block.
type ProducerClient interface {
	Receipt(sequenceID, highestSequenceID, ledgerID, entryID uint64)
	SendError(sequenceID uint64, err error)
	// Disconnect sends CLOSE_PRODUCER: the client looks up again and reconnects.
	Disconnect()
	// Alive probes the connection; false if the peer does not answer within the liveness timeout. It may block and is
	// called from a goroutine of its own.
	Alive(ctx context.Context) bool
	// CnxID is unique per connection.
	CnxID() uint64
}

// Consumer is an attached consumer. Methods are called from the connection's reader and never block, except as said.
type Consumer interface {
	Flow(permits uint32)
	// Ack handles one ACK command; done is called once the acknowledgement is durable (or refused).
	Ack(cmd *pulsarproto.CommandAck, done func(error))
	// Redeliver handles REDELIVER_UNACKNOWLEDGED_MESSAGES; no ids means all.
	Redeliver(cmd *pulsarproto.CommandRedeliverUnacknowledgedMessages)
	// Seek resets the cursor. All consumers of the subscription are disconnected before done.
	Seek(cmd *pulsarproto.CommandSeek, done func(error))
	// Unsubscribe deletes the subscription.
	Unsubscribe(force bool, done func(error))
	// LastMessageID answers GET_LAST_MESSAGE_ID: the last position that can really be delivered.
	LastMessageID(done func(last, markDelete *pulsarproto.MessageIdData, err error))
	// Resume is called when the connection's write queue has drained after ConsumerClient.Full was true.
	Resume()
	// Close detaches the consumer; its unacknowledged messages go to others.
	Close()
}

// Delivery is one MESSAGE.
type Delivery struct {
	LedgerID, EntryID uint64
	Partition         int32 // -1: not a partition
	RedeliveryCount   uint32
	AckSet            []int64 // nil: whole entry
	ConsumerEpoch     uint64
	HasConsumerEpoch  bool
	Payload           []byte // stored bytes, shared: never changed
}

// ConsumerClient is the connection's end of a consumer. Methods never block.
type ConsumerClient interface {
	Message(d Delivery)
	// Full reports that the connection's write queue is above its bound: stop delivering until Consumer.Resume.
	Full() bool
	ActiveConsumerChange(active bool)
	// Disconnect sends CLOSE_CONSUMER.
	Disconnect()
	Alive(ctx context.Context) bool
	CnxID() uint64
}

// Lookup finds the owner of a topic.
type Lookup interface {
	// Topic answers LOOKUP for a user topic or an assignment partition.
	Topic(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandLookupTopic) (LookupAnswer, error)
}

// LookupAnswer is the body of LOOKUP_RESPONSE.
type LookupAnswer struct {
	ServiceURL             string
	ServiceURLTLS          string
	Redirect               bool // else Connect
	Authoritative          bool
	ProxyThroughServiceURL bool
}
