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

// Consumer is an attached consumer. No method blocks. The connection calls one method at a time, Resume excepted.
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
	// Stats answers CONSUMER_STATS, without its request id.
	Stats(done func(*pulsarproto.CommandConsumerStatsResponse, error))
	// Resume is called once when the connection's write queue has drained after ConsumerClient.Full was true, from the
	// connection's writer: beside the other methods, possibly after Close.
	Resume()
	// Close detaches the consumer; its unacknowledged messages go to others. It may run beside or after
	// ConsumerClient.Disconnect: a consumer that is detached already needs nothing more.
	Close()
}

// ConsumerClient is the connection's end of a consumer. Methods never block.
type ConsumerClient interface {
	Message(d Delivery)
	// Full reports that the connection's write queue is above its bound: stop delivering until Consumer.Resume.
	Full() bool
	// ActiveConsumerChange tells a client of protocol version 12 or later whether it is the active one; others are not told.
	ActiveConsumerChange(active bool)
	// ReachedEndOfTopic tells a client that knows REACHED_END_OF_TOPIC that nothing will follow; others are not told.
	ReachedEndOfTopic()
	// Disconnect sends CLOSE_CONSUMER: the client looks up again and subscribes. The topic has detached the consumer or does
	// so itself; the connection forgets it, and messages that come later go nowhere.
	Disconnect()
	Alive(ctx context.Context) bool
	Peer() Peer
}
