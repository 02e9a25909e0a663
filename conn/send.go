package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// send hands a message to its producer's topic. The answer is a receipt or SEND_ERROR, in the order of the sends. What is
// wrong with the bytes of a message is refused without closing: other producers of the connection go on. After a wrong checksum
// the topic disconnects the producer, because clients send the same message again.
// Errors: an unknown producer, one that is being created or closed, no payload; all close the connection.
//
// Source: PulsarApi.proto CommandSend; ServerCnx.handleSend; Producer.checkAndStartPublish, verifyChecksum.
func (s *session) send(cmd *pulsarproto.CommandSend, payload []byte, frameSize int) error {
	if len(payload) == 0 {
		return &inputError{BadPayload, errors.New("SEND without a payload")}
	}
	p, topic, err := s.sender(cmd.GetProducerId())
	if p == nil {
		return err
	}
	if !s.out.acceptSend(p, frameSize, s.pause) {
		return errStopped
	}
	msg := Send{
		SequenceID:        cmd.GetSequenceId(),
		HighestSequenceID: max(cmd.GetHighestSequenceId(), cmd.GetSequenceId()),
		IsChunk:           cmd.GetIsChunk(),
		Marker:            cmd.GetMarker(),
		Payload:           payload,
	}
	if cmd.TxnidMostBits != nil && cmd.TxnidLeastBits != nil { // 0 is a valid half, and half an id is none
		msg.Txn, msg.InTxn = txn.ID{Most: *cmd.TxnidMostBits, Least: *cmd.TxnidLeastBits}, true
	}
	if err := s.parse(cmd, &msg); err != nil {
		s.refuse(&msg, err)
	}
	topic.Send(msg)
	return nil
}

// parse completes msg by what its payload tells.
func (s *session) parse(cmd *pulsarproto.CommandSend, msg *Send) error {
	metadata, content, err := pulsarproto.ParsePayload(msg.Payload)
	if err != nil {
		return err
	}
	msg.Metadata = metadata
	msg.NumMessages, err = numMessages(cmd, metadata, len(content), s.options.MaxMessageSize)
	return err
}

// sender returns a producer that is attached, or nothing and no error if its sends are to be ignored.
func (s *session) sender(id uint64) (*producer, Producer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.producers[id]
	if p == nil {
		if at, dropped := s.droppedProducers[id]; dropped && time.Since(at) <= s.droppedFor() {
			return nil, nil, nil
		}
		return nil, nil, &inputError{BadUnknownProducer, fmt.Errorf("SEND to unknown producer %d", id)}
	}
	switch p.state {
	case attached:
		return p, p.topic, nil
	case lost:
		return nil, nil, nil
	}
	return nil, nil, &inputError{BadProducerNotReady, fmt.Errorf("SEND to producer %d, which is being created or closed", id)}
}

// leastBatched is what a message takes in a batch at least, in bytes: the size of its metadata, 4 bytes, and the metadata, of
// which payload_size is required, 2 bytes. Source: PulsarApi.proto SingleMessageMetadata; binary-protocol, batched messages.
const leastBatched = 6

// numMessages is what one entry counts for. The metadata knows: it is what consumers split the entry by. A number that content
// bytes cannot hold is refused, because whoever keeps indexes of the batch needs memory by it; what compressed content holds
// is believed up to maxSize bytes. Encryption makes content no smaller.
func numMessages(cmd *pulsarproto.CommandSend, metadata *pulsarproto.MessageMetadata, content, maxSize int) (int32, error) {
	count := cmd.GetNumMessages()
	if metadata.NumMessagesInBatch != nil {
		count = metadata.GetNumMessagesInBatch()
	}
	if metadata.GetCompression() != pulsarproto.CompressionType_NONE {
		content = int(min(int64(metadata.GetUncompressedSize()), int64(maxSize)))
	}
	if count < 1 || count > 1 && int64(count)*leastBatched > int64(content) {
		return 0, fmt.Errorf("%w: an entry of %d messages in %d bytes", txn.ErrNotAllowed, count, content)
	}
	return count, nil
}

// refuse lets the topic answer a message whose bytes are at fault when its turn comes. NotAllowedError stops clients from sending
// the same bytes for ever.
func (s *session) refuse(msg *Send, err error) {
	reason, code := BadMetadata, pulsarproto.ServerError_NotAllowedError
	if errors.Is(err, pulsarproto.ErrChecksum) {
		reason, code = BadChecksum, pulsarproto.ServerError_ChecksumError
	}
	s.options.Events.BadInput(reason)
	msg.Payload, msg.Refused = nil, cnx.Refuse(code, err.Error())
}
