package pulsarproto

import "google.golang.org/protobuf/encoding/protowire"

// Message is the body of MESSAGE.
type Message struct {
	ConsumerID        uint64
	LedgerID, EntryID uint64
	Partition         int32 // -1: not a partition
	RedeliveryCount   uint32
	AckSet            []int64 // a set bit is a message to deliver; empty: all
	ConsumerEpoch     uint64
	HasConsumerEpoch  bool
}

// AppendMessageHead appends the frame of MESSAGE up to its payload part of payloadSize bytes, which the caller writes next.
func AppendMessageHead(dst []byte, message Message, payloadSize int) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_MESSAGE)
	dst = appendUint64(dst, 1, message.ConsumerID)
	dst, messageID := openMessage(dst, 2)
	dst = appendUint64(dst, 1, message.LedgerID)
	dst = appendUint64(dst, 2, message.EntryID)
	if message.Partition >= 0 {
		dst = appendUint64(dst, 3, uint64(message.Partition))
	}
	dst = closeMessage(dst, messageID)
	dst = appendUint64(dst, 3, uint64(message.RedeliveryCount))
	for _, word := range message.AckSet {
		dst = protowire.AppendTag(dst, 4, protowire.VarintType)
		dst = protowire.AppendVarint(dst, uint64(word))
	}
	if message.HasConsumerEpoch {
		dst = appendUint64(dst, 5, message.ConsumerEpoch)
	}
	return closeFrame(closeMessage(dst, body), start, payloadSize)
}

// AppendAckResponse appends ACK_RESPONSE. Like Pulsar's it carries no transaction id.
func AppendAckResponse(dst []byte, consumerID, requestID uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_ACK_RESPONSE)
	dst = appendUint64(dst, 1, consumerID)
	dst = appendUint64(dst, 6, requestID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendAckError appends an ACK_RESPONSE with an error.
func AppendAckError(dst []byte, consumerID, requestID uint64, code ServerError, text string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_ACK_RESPONSE)
	dst = appendUint64(dst, 1, consumerID)
	dst = appendFault(dst, 4, code, text)
	dst = appendUint64(dst, 6, requestID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendActiveConsumerChange appends ACTIVE_CONSUMER_CHANGE, for Failover subscriptions.
func AppendActiveConsumerChange(dst []byte, consumerID uint64, active bool) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_ACTIVE_CONSUMER_CHANGE)
	dst = appendUint64(dst, 1, consumerID)
	dst = appendUint64(dst, 2, protowire.EncodeBool(active))
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendReachedEndOfTopic appends REACHED_END_OF_TOPIC: the topic is terminated and everything is acknowledged.
func AppendReachedEndOfTopic(dst []byte, consumerID uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_REACHED_END_OF_TOPIC)
	dst = appendUint64(dst, 1, consumerID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendCloseConsumer appends CLOSE_CONSUMER: the client looks the topic up again.
func AppendCloseConsumer(dst []byte, consumerID uint64) []byte {
	return appendClose(dst, BaseCommand_CLOSE_CONSUMER, consumerID)
}

// AppendConsumerStats appends CONSUMER_STATS_RESPONSE.
func AppendConsumerStats(dst []byte, stats *CommandConsumerStatsResponse) []byte {
	return appendReply(dst, &BaseCommand{Type: BaseCommand_CONSUMER_STATS_RESPONSE.Enum(), ConsumerStatsResponse: stats})
}

// AppendConsumerStatsError appends a CONSUMER_STATS_RESPONSE with an error.
func AppendConsumerStatsError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	return AppendConsumerStats(dst, &CommandConsumerStatsResponse{RequestId: &requestID, ErrorCode: &code, ErrorMessage: &text})
}

// AppendGetLastMessageIdResponse appends GET_LAST_MESSAGE_ID_RESPONSE. last has entry 2^64-1 if nothing can be delivered;
// markDelete is the subscription's position, which the Go client compares with.
func AppendGetLastMessageIdResponse(dst []byte, requestID uint64, last, markDelete *MessageIdData) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_GET_LAST_MESSAGE_ID_RESPONSE.Enum(),
		GetLastMessageIdResponse: &CommandGetLastMessageIdResponse{
			RequestId:                  &requestID,
			LastMessageId:              last,
			ConsumerMarkDeletePosition: markDelete,
		},
	})
}
