package conn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// tlsHello is the start of a TLS 1.3 ClientHello record.
var tlsHello = []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03}

// rawFrame is a frame whose command is any bytes.
func rawFrame(command []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(command)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(command)))
	return append(frame, command...)
}

// rawCommand is a BaseCommand of any type number, with a body of any bytes unless body is nil.
func rawCommand(kind uint64, body []byte) []byte {
	command := protowire.AppendVarint([]byte{1 << 3}, kind)
	if body == nil {
		return command
	}
	command = protowire.AppendTag(command, protowire.Number(kind), protowire.BytesType)
	return protowire.AppendBytes(command, body)
}

// Each input ends its connection, is counted under its reason, and harms no other connection.
func TestBadInput(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, 6<<20)
	for _, test := range []struct {
		name string
		raw  []byte
		want BadInput
	}{
		{"TLS hello", tlsHello, BadTLS},
		{"HTTP request", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), BadHTTP},
		{"HTTP/2 preface", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), BadHTTP},
		{"garbage", bytes.Repeat([]byte{0xa5}, 64), BadFrameSize},
		{"total size 0", []byte{0, 0, 0, 0, 0, 0, 0, 0}, BadFrameSize},
		{"total size 4 with command size 0", []byte{0, 0, 0, 4, 0, 0, 0, 0}, BadFrameSize},
		{"command size above total size", []byte{0, 0, 0, 8, 0, 0, 0, 5, 1, 2, 3, 4}, BadFrameSize},
		{"command size 2^32-1", []byte{0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}, BadFrameSize},
		{"total size 6 MiB", huge, BadFrameSize},
		{"total size 2^32-1", []byte{0xff, 0xff, 0xff, 0xff}, BadFrameSize},
		{"cut protobuf", rawFrame([]byte{1 << 3, 50, 50<<3&0x7f | 2, 3}), BadCommand},
		{"no type", rawFrame([]byte{0x92, 0x03, 0x00}), BadCommand},
		{"unknown type 99", rawFrame(rawCommand(99, nil)), BadCommandType},
		{"unknown type 1000 with its field", rawFrame(rawCommand(1000, []byte{8, 1})), BadCommandType},
		{"NEW_TXN without its body", rawFrame(rawCommand(50, nil)), BadCommand},
		{"PING without its body", rawFrame(rawCommand(18, nil)), BadCommand},
		{"NEW_TXN without request_id", rawFrame(rawCommand(50, []byte{2 << 3, 5})), BadCommand},
		{"END_TXN without request_id", rawFrame(rawCommand(56, []byte{2 << 3, 5})), BadCommand},
		{"TC_CLIENT_CONNECT_REQUEST without tc_id", rawFrame(rawCommand(62, []byte{1 << 3, 5})), BadCommand},
		{"LOOKUP without topic", rawFrame(rawCommand(23, []byte{2 << 3, 5})), BadCommand},
		{"ADD_SUBSCRIPTION_TO_TXN without subscription name",
			rawFrame(rawCommand(54, []byte{1 << 3, 5, 4<<3 | 2, 3, 1<<3 | 2, 1, 't'})), BadCommand},
		{"NEW_TXN_RESPONSE", rawFrame(rawCommand(51, []byte{1 << 3, 5})), BadResponse},
		{"END_TXN_RESPONSE", rawFrame(rawCommand(57, []byte{1 << 3, 5})), BadResponse},
		{"TC_CLIENT_CONNECT_RESPONSE", rawFrame(rawCommand(63, []byte{1 << 3, 5})), BadResponse},
		{"SUCCESS", rawFrame(rawCommand(13, []byte{1 << 3, 5})), BadResponse},
		{"WATCH_TC_ASSIGNMENTS, which was not announced", rawFrame(rawCommand(79, []byte{1 << 3, 5})), BadResponse},
		{"SEND without payload", rawFrame(rawCommand(6, []byte{1 << 3, 1, 2 << 3, 1})), BadPayload},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				other := b.connectedPeer(t)
				p := b.connectedPeer(t)
				start := time.Now()
				if _, err := p.network.Write(test.raw); err != nil && !isClosed(err) {
					t.Fatal(err)
				}
				p.wantClosed()
				if waited := time.Since(start); waited > 0 {
					t.Errorf("closed after %s", waited)
				}
				synctest.Wait()
				if got := b.badInputs(); len(got) != 1 || got[0] != test.want {
					t.Errorf("bad input %q, want %q", got, test.want)
				}
				other.send(newTxnCommand(1, 0))
				other.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
			})
		})
	}
}

// FC-29: other protocols and impossible sizes are told by their reason and closed at once; stalled handshakes are closed
// at their deadline; a healthy client beside a thousand of them notices nothing.
func TestFC29OtherProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{KeepAlive: 30 * time.Second})
		healthy := b.connectedPeer(t)
		inputs := [][]byte{
			tlsHello,
			[]byte("GET / HTTP/1.1\r\n\r\n"),
			{0, 0, 0, 0},
			{0xff, 0xff, 0xff, 0xff},
			{0, 0, 0, 4, 0, 0, 0, 9},
			{0, 0, 0, 4, 0, 0, 0, 0},
			{0, 0, 0x10, 0, 0, 0, 0x0f, 0}, // a valid length, then nothing
		}
		var stalled []*peer
		for i := range 1000 {
			p := b.newPeer(t)
			if _, err := p.network.Write(inputs[i%len(inputs)]); err != nil && !isClosed(err) {
				t.Fatal(err)
			}
			if i%len(inputs) == len(inputs)-1 {
				stalled = append(stalled, p)
				continue
			}
			p.wantClosed()
			if i%100 == 0 {
				healthy.send(newTxnCommand(uint64(i), 0))
				healthy.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
			}
		}
		synctest.Wait()
		if got, want := b.connections(), len(stalled)+1; got != want {
			t.Errorf("%d connections are open, want the %d stalled ones and the healthy one", got, want-1)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, p := range stalled {
			p.wantClosed()
		}
		if got := b.lastClosed(); got != ClosedHandshake {
			t.Errorf("the last one was closed for %q", got)
		}
		healthy.alive()
	})
}

// FC-29: a valid frame that comes one byte every five seconds is closed at the deadline of the handshake.
func TestFC29SlowHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{KeepAlive: 30 * time.Second})
		p := b.newPeer(t)
		frame := encodeFrame(t, connectCommand(21), nil)
		start := time.Now()
		for _, c := range frame {
			if _, err := p.network.Write([]byte{c}); err != nil {
				break
			}
			time.Sleep(5 * time.Second)
		}
		if got := time.Since(start); got > 35*time.Second {
			t.Errorf("closed after %s", got)
		}
		synctest.Wait()
		if got := b.lastClosed(); got != ClosedHandshake {
			t.Errorf("closed for %q", got)
		}
	})
}

// FC-32: what was answered before the bad input still arrives.
func TestFC32AnswersBeforeBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		p.write(append(encodeFrame(t, newTxnCommand(1, 0), nil), rawFrame(rawCommand(99, nil))...))
		synctest.Wait()
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		p.wantClosed()
	})
}

// FC-32: unknown fields and bytes behind a command are ignored.
func TestFC32Tolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		p.write(rawFrame(rawCommand(50, []byte{1 << 3, 7, 15<<3 | 2, 1, 'x'})))
		if got := p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE).GetNewTxnResponse().GetRequestId(); got != 7 {
			t.Errorf("request %d", got)
		}
		command := append(rawCommand(18, []byte{}), 0xa0, 0x3f, 1) // field 1012 of BaseCommand
		p.write(rawFrame(command))
		p.want(pulsarproto.BaseCommand_PONG)
		p.sendPayload(pingCommand(), []byte("behind the command"))
		p.want(pulsarproto.BaseCommand_PONG)
	})
}

// FC-32: what is wrong with one message is refused by SEND_ERROR on a connection that stays; a SEND to a producer that
// never was ends the connection; SENDs behind a CLOSE_PRODUCER of the server are ignored.
func TestFC32Sends(t *testing.T) {
	t.Run("unparsable metadata", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			for i, payload := range [][]byte{
				pulsarproto.AppendChecksummed(nil, []byte{0, 0, 0, 2, 0xff, 0xff, 'x'}),
				pulsarproto.AppendChecksummed(nil, []byte{0, 0, 0, 99, 'x'}),
				pulsarproto.AppendChecksummed(nil, []byte{0, 0}),
				pulsarproto.AppendChecksummed(nil, []byte{0, 0, 0, 0, 'x'}), // required fields absent
				{0, 0, 0, 2, 0xff, 0xff, 'x'},
			} {
				p.sendPayload(sendCommand(1, uint64(i)), payload)
				refusal := p.want(pulsarproto.BaseCommand_SEND_ERROR).GetSendError()
				if refusal.GetSequenceId() != uint64(i) || refusal.GetError() != pulsarproto.ServerError_NotAllowedError {
					t.Errorf("payload %d: %v", i, refusal)
				}
			}
			p.sendPayload(sendCommand(1, 9), payloadOf(t, "good"))
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			if sent := b.topics.producer(0).sent(); len(sent) != 1 || sent[0].SequenceID != 9 {
				t.Errorf("the topic got %v", sent)
			}
			if got := b.badInputs(); len(got) != 5 || got[0] != BadMetadata {
				t.Errorf("bad input %q", got)
			}
		})
	})
	t.Run("no message in the batch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			command := sendCommand(1, 3)
			command.Send.NumMessages = proto.Int32(0)
			p.sendPayload(command, payloadOf(t, "x"))
			p.want(pulsarproto.BaseCommand_SEND_ERROR)
			p.alive()
		})
	})
	t.Run("the batch knows its number of messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			payload, err := pulsarproto.AppendPayload(nil, &pulsarproto.MessageMetadata{
				ProducerName:       proto.String("p"),
				SequenceId:         proto.Uint64(0),
				PublishTime:        proto.Uint64(1),
				NumMessagesInBatch: proto.Int32(3),
			}, make([]byte, 3*leastBatched))
			if err != nil {
				t.Fatal(err)
			}
			command := sendCommand(1, 3)
			command.Send.NumMessages = proto.Int32(7)
			p.sendPayload(command, payload)
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			if sent := b.topics.producer(0).sent(); sent[0].NumMessages != 3 {
				t.Errorf("counted as %d messages", sent[0].NumMessages)
			}
		})
	})
	t.Run("unknown producer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			p.sendPayload(sendCommand(99, 0), payloadOf(t, "x"))
			p.wantClosed()
			synctest.Wait()
			if got := b.badInputs(); len(got) != 1 || got[0] != BadUnknownProducer {
				t.Errorf("bad input %q", got)
			}
			if got := b.topics.producer(0).closed(); got != 1 {
				t.Errorf("the producer was closed %d times", got)
			}
		})
	})
	t.Run("producer closed by the server, then by the client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.producingPeer(t)
			b.topics.producer(0).client.Disconnect()
			p.want(pulsarproto.BaseCommand_CLOSE_PRODUCER)
			p.send(producerCommand(2, 1, "t"))
			p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
			p.send(closeProducerCommand(3, 1))
			p.want(pulsarproto.BaseCommand_SUCCESS)
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			p.wantClosed()
		})
	})
	t.Run("producer closed by the server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{KeepAlive: 30 * time.Second})
			p := b.producingPeer(t)
			b.topics.producer(0).client.Disconnect()
			for i := range 20 {
				p.sendPayload(sendCommand(1, uint64(i)), payloadOf(t, "x"))
			}
			p.wantCommand(&pulsarproto.BaseCommand{
				Type: pulsarproto.BaseCommand_CLOSE_PRODUCER.Enum(),
				CloseProducer: &pulsarproto.CommandCloseProducer{
					ProducerId: proto.Uint64(1),
					RequestId:  proto.Uint64(1<<64 - 1),
				},
			})
			p.alive()
			b.topics.producer(0).client.Receipt(3, 3, 5, 5) // too late: goes nowhere
			p.send(producerCommand(2, 1, "t"))
			p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
			if got := len(b.topics.producer(0).sent()); got != 0 {
				t.Errorf("the closed producer got %d sends", got)
			}
			// After a keep-alive interval it is an unknown producer.
			b.topics.producer(1).client.Disconnect()
			p.want(pulsarproto.BaseCommand_CLOSE_PRODUCER)
			p.send(pingCommand())
			p.want(pulsarproto.BaseCommand_PONG)
			time.Sleep(29 * time.Second)
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			p.answerPing()
			time.Sleep(2 * time.Second)
			p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
			p.wantClosed()
		})
	})
}

// answerPing expects a PING and answers it.
func (p *peer) answerPing() {
	p.t.Helper()
	command, err := p.receiveAny()
	if err != nil || command.GetType() != pulsarproto.BaseCommand_PING {
		p.t.Fatalf("want PING, got %v, %v", command, err)
	}
	p.send(pongCommand())
}

// producingPeer returns a peer with a producer of id 1.
func (b *bench) producingPeer(t testing.TB) *peer {
	t.Helper()
	p := b.connectedPeer(t)
	p.send(producerCommand(1, 1, "t"))
	p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
	return p
}

// FC-31: a bad checksum is refused for its sequence id only, a good or absent one is accepted, and the bytes go to the topic
// unchanged.
func TestFC31Checksum(t *testing.T) {
	good := payloadOf(t, "content")
	flip := func(i int) []byte {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		return bad
	}
	for _, test := range []struct {
		name    string
		payload []byte
		good    bool
	}{
		{"good", good, true},
		{"flipped payload bit", flip(len(good) - 1), false},
		{"flipped metadata bit", flip(12), false},
		{"flipped checksum bit", flip(2), false},
		{"neither magic nor checksum", good[6:], true},
		{"magic, cut in the checksum", good[:4], false},
		{"magic, cut in the payload", good[:len(good)-1], false},
	} {
		for _, inTxn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, transaction %t", test.name, inTxn), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, Options{})
					p := b.producingPeer(t)
					command := sendCommand(1, 5)
					if inTxn {
						command.Send.TxnidMostBits, command.Send.TxnidLeastBits = proto.Uint64(0), proto.Uint64(0)
					}
					p.sendPayload(command, test.payload)
					if test.good {
						p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
						sent := b.topics.producer(0).sent()
						if len(sent) != 1 || !bytes.Equal(sent[0].Payload, test.payload) || sent[0].InTxn != inTxn {
							t.Errorf("the topic got %v", sent)
						}
						return
					}
					refusal := p.want(pulsarproto.BaseCommand_SEND_ERROR).GetSendError()
					if refusal.GetError() != pulsarproto.ServerError_ChecksumError || refusal.GetSequenceId() != 5 {
						t.Errorf("refused with %v", refusal)
					}
					p.sendPayload(command, good)
					p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
				})
			})
		}
	}
}
