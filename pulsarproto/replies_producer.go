package pulsarproto

// ProducerSuccess is the body of PRODUCER_SUCCESS.
type ProducerSuccess struct {
	RequestID      uint64
	ProducerName   string
	LastSequenceID int64  // -1: none
	SchemaVersion  []byte // empty: the producer has no schema
	TopicEpoch     uint64
	HasTopicEpoch  bool
	Ready          bool // false: the producer waits for its turn, and a second answer follows
}

// AppendProducerSuccess appends PRODUCER_SUCCESS.
func AppendProducerSuccess(dst []byte, success ProducerSuccess) []byte {
	body := &CommandProducerSuccess{
		RequestId:      &success.RequestID,
		ProducerName:   &success.ProducerName,
		LastSequenceId: &success.LastSequenceID,
		SchemaVersion:  append([]byte{}, success.SchemaVersion...), // present even if empty
		ProducerReady:  &success.Ready,
	}
	if success.HasTopicEpoch {
		body.TopicEpoch = &success.TopicEpoch
	}
	return appendReply(dst, &BaseCommand{Type: BaseCommand_PRODUCER_SUCCESS.Enum(), ProducerSuccess: body})
}

// SendReceipt is the body of SEND_RECEIPT.
type SendReceipt struct {
	ProducerID        uint64
	SequenceID        uint64 // exactly the command's: the Go client closes the connection on a larger one
	HighestSequenceID uint64
	LedgerID, EntryID uint64 // both 2^64-1: a duplicate, stored earlier
}

// AppendSendReceipt appends SEND_RECEIPT.
func AppendSendReceipt(dst []byte, receipt SendReceipt) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_SEND_RECEIPT)
	dst = appendUint64(dst, 1, receipt.ProducerID)
	dst = appendUint64(dst, 2, receipt.SequenceID)
	dst, messageID := openMessage(dst, 3)
	dst = appendUint64(dst, 1, receipt.LedgerID)
	dst = appendUint64(dst, 2, receipt.EntryID)
	dst = closeMessage(dst, messageID)
	dst = appendUint64(dst, 4, receipt.HighestSequenceID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendSendError appends SEND_ERROR. The Go client drops the producer on NotAllowedError and TopicTerminatedError, fails
// one message on ChecksumError, and closes the connection on every other code.
func AppendSendError(dst []byte, producerID, sequenceID uint64, code ServerError, text string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_SEND_ERROR)
	dst = appendUint64(dst, 1, producerID)
	dst = appendUint64(dst, 2, sequenceID)
	dst = appendFault(dst, 3, code, text)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendCloseProducer appends CLOSE_PRODUCER: the client looks the topic up again.
func AppendCloseProducer(dst []byte, producerID uint64) []byte {
	return appendClose(dst, BaseCommand_CLOSE_PRODUCER, producerID)
}

// appendClose writes CLOSE_PRODUCER or CLOSE_CONSUMER, whose bodies have the same layout.
func appendClose(dst []byte, commandType BaseCommand_Type, id uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), commandType)
	dst = appendUint64(dst, 1, id)
	dst = appendUint64(dst, 2, brokerRequestID)
	return closeFrame(closeMessage(dst, body), start, 0)
}
