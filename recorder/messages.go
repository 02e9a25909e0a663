package recorder

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// The two ways in which clients say that a message belongs to a transaction.
const (
	inCommand  = iota // in the SEND command only, as the Go client does
	inMetadata        // in the message's metadata as well, as the Java client does
)

var placeNames = []string{"cmd only", "cmd+metadata"}

// sendOptions say how a message is sent; the zero value is plain.
type sendOptions struct {
	txn             *txn.ID // in the command
	metadata        *txn.ID // in the metadata
	noMost, noLeast bool    // leave that half out of the command
	batch           int     // number of messages in a batch; 0: no batch
}

// in is a message of transaction id, named in these places.
func in(id *txn.ID, place int) sendOptions {
	options := sendOptions{txn: id}
	if place == inMetadata {
		options.metadata = id
	}
	return options
}

// quiet is how long nothing must come before a consumer counts as served.
const quiet = 700 * time.Millisecond

func (r *recording) producer(x *connection, topic string, txnEnabled bool) uint64 {
	x.ask(lookupCommand(topic))
	x.producers++
	id := x.producers
	a := x.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PRODUCER.Enum(),
		Producer: &pulsarproto.CommandProducer{Topic: &topic, ProducerId: &id, TxnEnabled: &txnEnabled}})
	if !a.ok() {
		r.say("producer", "PRODUCER "+topic, &pending{connection: x}, a)
	}
	return id
}

// subscribe attaches a durable consumer at the earliest message.
func (r *recording) subscribe(x *connection, topic, subscription string, subType pulsarproto.CommandSubscribe_SubType, permits uint32) uint64 {
	x.ask(lookupCommand(topic))
	x.consumers++
	id := x.consumers
	a := x.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SUBSCRIBE.Enum(), Subscribe: &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &subscription, SubType: &subType, ConsumerId: &id, ConsumerName: proto.String(fmt.Sprint("c", id)),
		Durable: proto.Bool(true), InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum()}})
	if !a.ok() {
		r.say("subscribe", "SUBSCRIBE "+topic, &pending{connection: x}, a)
	}
	if permits > 0 {
		x.write(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_FLOW.Enum(), Flow: &pulsarproto.CommandFlow{ConsumerId: &id, MessagePermits: &permits}})
	}
	return id
}

// redeliverAll asks for everything that is not acknowledged.
func (x *connection) redeliverAll(consumer uint64) {
	x.write(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES.Enum(),
		RedeliverUnacknowledgedMessages: &pulsarproto.CommandRedeliverUnacknowledgedMessages{ConsumerId: &consumer}})
}

// send sends content and records the receipt; with an empty step only a refusal is recorded.
func (r *recording) send(step string, x *connection, producer uint64, content string, options sendOptions) *reply {
	p := x.startSend(producer, content, options)
	a := p.wait(answerTimeout)
	switch {
	case step != "":
		r.say(step, r.describeSend(content, options), p, a)
	case !a.ok():
		r.say("send", "SEND "+content, p, a)
	}
	return a
}

func (r *recording) describeSend(content string, options sendOptions) string {
	text := "SEND " + content
	if options.txn != nil {
		text += " cmd=" + r.txnName(options.txn)
	}
	if options.txn != nil && options.noMost {
		text += "(no most)"
	}
	if options.txn != nil && options.noLeast {
		text += "(no least)"
	}
	if options.metadata != nil {
		text += " metadata=" + r.txnName(options.metadata)
	}
	if options.batch > 0 {
		text += fmt.Sprintf(" batch=%d", options.batch)
	}
	return text
}

func sendKey(producer, sequence uint64) string { return fmt.Sprint(producer, "/", sequence) }

func (x *connection) startSend(producer uint64, content string, options sendOptions) *pending {
	x.sequence++
	sequence := x.sequence
	count := int32(max(1, options.batch))
	send := &pulsarproto.CommandSend{ProducerId: &producer, SequenceId: &sequence, NumMessages: &count}
	if options.txn != nil && !options.noMost {
		send.TxnidMostBits = &options.txn.Most
	}
	if options.txn != nil && !options.noLeast {
		send.TxnidLeastBits = &options.txn.Least
	}
	metadata := &pulsarproto.MessageMetadata{ProducerName: proto.String("recorder"), SequenceId: &sequence, PublishTime: u64(uint64(time.Now().UnixMilli()))}
	if options.metadata != nil {
		metadata.TxnidMostBits, metadata.TxnidLeastBits = &options.metadata.Most, &options.metadata.Least
	}
	bytes := []byte(content)
	if options.batch > 0 {
		metadata.NumMessagesInBatch = &count
		bytes = encodeBatch(content, options.batch)
	}
	p := &pending{connection: x, answers: make(chan *frame, 2),
		command: &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: send}}
	x.mu.Lock()
	x.sends[sendKey(producer, sequence)] = p.answers
	x.mu.Unlock()
	p.started = time.Now()
	x.writeRaw(encodeSend(p.command, metadata, bytes))
	return p
}

// encodeBatch is a batch of size messages: content.0, content.1 and so on.
func encodeBatch(content string, size int) []byte {
	var batch []byte
	for i := range size {
		message := fmt.Sprintf("%s.%d", content, i)
		metadata := encode(&pulsarproto.SingleMessageMetadata{PayloadSize: proto.Int32(int32(len(message)))})
		batch = binary.BigEndian.AppendUint32(batch, uint32(len(metadata)))
		batch = append(append(batch, metadata...), message...)
	}
	return batch
}

// received is a message as a consumer got it.
type received struct {
	content         string // of a batch: {first second ...}
	redeliveryCount uint32
	ackSet          []int64
	id              *pulsarproto.MessageIdData
}

func decodeMessage(f *frame) received {
	message := received{id: f.command.Message.MessageId, redeliveryCount: f.command.Message.GetRedeliveryCount(), ackSet: f.command.Message.AckSet}
	metadata, content, err := pulsarproto.ParsePayload(f.payload)
	switch {
	case err != nil:
		message.content = "UNREADABLE: " + err.Error()
	case metadata.NumMessagesInBatch != nil:
		message.content = "{" + strings.Join(decodeBatch(content), " ") + "}"
	default:
		message.content = string(content)
	}
	return message
}

// decodeBatch ends at the first message that is not whole.
func decodeBatch(content []byte) []string {
	var messages []string
	for len(content) >= 4 {
		size := binary.BigEndian.Uint32(content)
		single := &pulsarproto.SingleMessageMetadata{}
		if uint64(size) > uint64(len(content)-4) || proto.Unmarshal(content[4:4+size], single) != nil {
			break
		}
		content = content[4+size:]
		if int(single.GetPayloadSize()) > len(content) {
			break
		}
		messages = append(messages, string(content[:single.GetPayloadSize()]))
		content = content[single.GetPayloadSize():]
	}
	return messages
}

// receive collects what a consumer gets until nothing has come for as long as idle.
func (x *connection) receive(consumer uint64, idle time.Duration) []received {
	var messages []received
	for last := time.Now(); time.Since(last) < idle && !x.isClosed(); time.Sleep(5 * time.Millisecond) {
		x.mu.Lock()
		frames := x.messages[consumer]
		x.messages[consumer] = nil
		x.mu.Unlock()
		for _, f := range frames {
			messages = append(messages, decodeMessage(f))
			last = time.Now()
		}
	}
	return messages
}

// receive records what a consumer gets.
func (r *recording) receive(step string, x *connection, consumer uint64, what string) []received {
	messages := x.receive(consumer, quiet)
	var parts []string
	for _, m := range messages {
		part := m.content
		if m.redeliveryCount > 0 {
			part += fmt.Sprintf("(redelivery=%d)", m.redeliveryCount)
		}
		if len(m.ackSet) > 0 {
			part += fmt.Sprintf("(ack_set=%b)", m.ackSet)
		}
		parts = append(parts, part)
	}
	text := "received [" + strings.Join(parts, " ") + "]"
	if x.isClosed() {
		text += " CONNECTION CLOSED"
	}
	r.line(step, "consumer "+what, text)
	return messages
}
