package cnx

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

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
	// Refused is why the connection refuses the message; nil if it does not. The topic only answers it, when its turn comes.
	Refused error
}

// Producer is an attached producer. The connection calls one method at a time, and none after Close.
type Producer interface {
	// Send stores a message. The answer comes through ProducerClient, in the order of the sends.
	Send(msg Send)
	// Again tells that the client attaches the producer, which is attached, once more: it sends again whatever it has no receipt for. done
	// is called once, when that is expected, or with an error, upon which the client is to try again.
	Again(done func(error))
	// Close detaches the producer and returns when it is detached; sends in flight are still answered or dropped, and
	// answers that come after Close has returned go nowhere. It runs in a goroutine of its own, and may run beside or after
	// ProducerClient.Disconnect: a producer that is detached already needs nothing more.
	Close()
}

// ProducerClient is the connection's end of a producer. Methods never block.
type ProducerClient interface {
	// Queued tells, at most once and before Topics.Produce returns, that the producer waits to become exclusive.
	Queued(info ProducerInfo)
	Receipt(sequenceID, highestSequenceID, ledgerID, entryID uint64)
	SendError(sequenceID uint64, err error)
	// Disconnect sends CLOSE_PRODUCER: the client looks up again and reconnects. The topic has detached the producer or
	// does so itself; the connection forgets it, drops answers that come later and ignores the client's sends under way.
	Disconnect()
	// Alive probes the connection; false if the peer does not answer within the liveness timeout, which ends the connection. True
	// if ctx ends first. It may block and is called from a goroutine of its own.
	Alive(ctx context.Context) bool
	// CnxID is unique per connection.
	CnxID() uint64
	Peer() Peer
}
