package cnx

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

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
