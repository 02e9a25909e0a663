package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// send hands a message to its producer's topic. The answer is a receipt or SEND_ERROR, in the order of the sends. What is
// wrong with the bytes of a message is refused without closing: other producers of the connection go on.
// Errors: an unknown producer, one that is being created or closed, no payload; all close the connection.
//
// Source: PulsarApi.proto CommandSend; ServerCnx.handleSend; Producer.checkAndStartPublish, verifyChecksum.
func (s *session) send(cmd *pulsarproto.CommandSend, payload []byte) error {
	if len(payload) == 0 {
		return &inputError{BadPayload, errors.New("SEND without a payload")}
	}
	p, topic, err := s.sender(cmd.GetProducerId())
	if p == nil {
		return err
	}
	if !s.out.acceptSend(p, s.pause) {
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
	msg.Metadata, _, err = pulsarproto.ParsePayload(payload)
	if err != nil {
		p.refuse(msg, err)
		return nil
	}
	msg.NumMessages, err = numMessages(cmd, msg.Metadata)
	if err != nil {
		p.refuse(msg, err)
		return nil
	}
	topic.Send(msg)
	return nil
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

// numMessages is what one entry counts for. The metadata knows: it is what consumers split the entry by.
func numMessages(cmd *pulsarproto.CommandSend, metadata *pulsarproto.MessageMetadata) (int32, error) {
	count := cmd.GetNumMessages()
	if metadata.NumMessagesInBatch != nil {
		count = metadata.GetNumMessagesInBatch()
	}
	if count < 1 {
		return 0, fmt.Errorf("%w: an entry of %d messages", txn.ErrNotAllowed, count)
	}
	return count, nil
}

// refuse answers a message whose bytes are at fault. NotAllowedError stops clients from sending the same bytes for ever.
func (p *producer) refuse(msg Send, err error) {
	reason, code := BadMetadata, pulsarproto.ServerError_NotAllowedError
	if errors.Is(err, pulsarproto.ErrChecksum) {
		reason, code = BadChecksum, pulsarproto.ServerError_ChecksumError
	}
	p.session.options.Events.BadInput(reason)
	p.SendError(msg.HighestSequenceID, &requestError{code, err.Error()})
}
