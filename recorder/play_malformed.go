package recorder

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playMalformed writes what no client should.
func playMalformed(r *recording) {
	malformedTypes(r)
	malformedSizes(r)
	malformedForeign(r)
	malformedAbsent(r)
	malformedHandshake(r)
	malformedSend(r)
	malformedExtra(r)
}

// malformedTypes has types that are unknown, or not for a client.
func malformedTypes(r *recording) {
	r.malformed("unknown type 99", r.shaken(), "BaseCommand{type:99}", encodeFrame([]byte{0x08, 99}))
	r.malformed("unknown type 99 with field 99", r.shaken(), "BaseCommand{type:99, 99:{1:5}}", encodeFrame([]byte{0x08, 99, 0x9a, 0x06, 2, 0x08, 5}))
	r.malformed("unknown type 1000", r.shaken(), "BaseCommand{type:1000}", encodeFrame([]byte{0x08, 0xe8, 0x07}))
	r.malformed("no type", r.shaken(), "BaseCommand{} (length 0)", encodeFrame(nil))
	r.malformed("type without body NEW_TXN", r.shaken(), "BaseCommand{type:50}", encodeFrame([]byte{0x08, 50}))
	r.malformed("type without body END_TXN", r.shaken(), "BaseCommand{type:56}", encodeFrame([]byte{0x08, 56}))
	r.malformed("type without body TC_CLIENT_CONNECT", r.shaken(), "BaseCommand{type:62}", encodeFrame([]byte{0x08, 62}))
	r.malformed("type without body PING", r.shaken(), "BaseCommand{type:18}", encodeFrame([]byte{0x08, 18}))
	r.malformed("response from a client NEW_TXN_RESPONSE", r.shaken(), "NEW_TXN_RESPONSE request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN_RESPONSE.Enum(), NewTxnResponse: &pulsarproto.CommandNewTxnResponse{RequestId: u64(1)}})))
	r.malformed("response from a client END_TXN_RESPONSE", r.shaken(), "END_TXN_RESPONSE request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN_RESPONSE.Enum(), EndTxnResponse: &pulsarproto.CommandEndTxnResponse{RequestId: u64(1)}})))
	r.malformed("response from a client TC_CLIENT_CONNECT_RESPONSE", r.shaken(), "TC_CLIENT_CONNECT_RESPONSE", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE.Enum(), TcClientConnectResponse: &pulsarproto.CommandTcClientConnectResponse{RequestId: u64(1)}})))
	r.malformed("response from a client SUCCESS", r.shaken(), "SUCCESS request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SUCCESS.Enum(), Success: &pulsarproto.CommandSuccess{RequestId: u64(1)}})))
}

// malformedSizes has sizes that are too large or contradict each other.
func malformedSizes(r *recording) {
	big := make([]byte, 4, 4+6<<20)
	big[0], big[1] = 0x00, 0x60 // 6 MiB
	r.malformed("frame of 6 MiB, header only", r.shaken(), "total_size=6291456", big[:4])
	r.malformed("frame of 6 MiB, complete", r.shaken(), "total_size=6291456 and that many zero bytes", big[:4+6<<20])
	big5 := make([]byte, 4)
	big5[0], big5[1], big5[2], big5[3] = 0x00, 0x50, 0x27, 0x00 // 5 MiB + 9984
	r.malformed("frame of 5 MiB + 9984, header only", r.shaken(), "total_size=5252864", big5)
	r.malformed("frame of 2^32-1", r.shaken(), "total_size=4294967295", []byte{0xff, 0xff, 0xff, 0xff})
	r.malformed("zero length frame", r.shaken(), "total_size=0", []byte{0, 0, 0, 0})
	r.malformed("zero length frame, then PING", r.shaken(), "total_size=0 twice", []byte{0, 0, 0, 0, 0, 0, 0, 0})
	r.malformed("total 4, command 0", r.shaken(), "00000004 00000000", []byte{0, 0, 0, 4, 0, 0, 0, 0})
	r.malformed("command size larger than total", r.shaken(), "total=10 command=100", append([]byte{0, 0, 0, 10, 0, 0, 0, 100}, make([]byte, 6)...))
	r.malformed("command size negative", r.shaken(), "total=10 command=ffffffff", append([]byte{0, 0, 0, 10, 0xff, 0xff, 0xff, 0xff}, make([]byte, 6)...))
}

// malformedForeign speaks another protocol, or garbage.
func malformedForeign(r *recording) {
	r.malformed("http request", r.shaken(), "GET / HTTP/1.1", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	r.malformed("http request before CONNECT", r.dialRaw(), "GET / HTTP/1.1", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	r.malformed("garbage command", r.shaken(), "frame with 20 bytes of 0xff", encodeFrame([]byte(strings.Repeat("\xff", 20))))
	r.malformed("truncated protobuf", r.shaken(), "END_TXN cut in the middle", encodeFrame(encode(endTxnCommand(txn.ID{Most: 0, Least: 5}, commit.Enum()))[:5]))
}

// malformedAbsent leaves out required fields.
func malformedAbsent(r *recording) {
	end := endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum())
	r.malformed("END_TXN without request_id", r.shaken(), "END_TXN most=0 least=2^40 action=COMMIT", encodeFrame(encode(end)))
	nw := newTxnCommand(u64(60000), u64(0))
	r.malformed("NEW_TXN without request_id", r.shaken(), "NEW_TXN ttl=60000", encodeFrame(encode(nw)))
	r.malformed("TC_CLIENT_CONNECT without request_id", r.shaken(), "TC_CLIENT_CONNECT tc_id=0", encodeFrame(encode(tcConnectCommand(0))))
	r.malformed("LOOKUP without topic", r.shaken(), "LOOKUP request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_LOOKUP.Enum(), LookupTopic: &pulsarproto.CommandLookupTopic{RequestId: u64(1)}})))
}

// malformedHandshake breaks the handshake.
func malformedHandshake(r *recording) {
	r.malformed("second CONNECT", r.shaken(), "CONNECT", encodeFrame(encode(connectCommand(20))))
	r.malformed("CONNECT without client_version", r.dialRaw(), "CONNECT {}", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: &pulsarproto.CommandConnect{}})))
	b := newTxnCommand(u64(60000), u64(0))
	b.NewTxn.RequestId = u64(1)
	r.malformed("NEW_TXN before CONNECT", r.dialRaw(), "NEW_TXN", encodeFrame(encode(b)))
	b = lookupCommand(assignTopic)
	b.LookupTopic.RequestId = u64(1)
	r.malformed("LOOKUP before CONNECT", r.dialRaw(), "LOOKUP", encodeFrame(encode(b)))
	b = tcConnectCommand(0)
	b.TcClientConnectRequest.RequestId = u64(1)
	r.malformed("TC_CLIENT_CONNECT before CONNECT", r.dialRaw(), "TC_CLIENT_CONNECT_REQUEST", encodeFrame(encode(b)))
	r.malformed("PING before CONNECT", r.dialRaw(), "PING", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PING.Enum(), Ping: &pulsarproto.CommandPing{}})))
	x := r.dialRaw()
	b = newTxnCommand(u64(60000), u64(0))
	b.NewTxn.RequestId = u64(1)
	r.malformed("CONNECT and NEW_TXN in one write", x, "CONNECT, NEW_TXN", append(append([]byte{}, encodeFrame(encode(connectCommand(20)))...), encodeFrame(encode(b))...))
}

// malformedSend sends and acknowledges what is not there, or damaged.
func malformedSend(r *recording) {
	x := r.shaken()
	pl := encodeSend(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: u64(99), SequenceId: u64(1), NumMessages: proto.Int32(1)}}, &pulsarproto.MessageMetadata{ProducerName: proto.String("x"), SequenceId: u64(1), PublishTime: u64(1)}, []byte("x"))
	r.malformed("SEND for an unknown producer", x, "SEND producer_id=99", pl)
	x = r.shaken()
	p := r.producer(x, r.topic("j"), true)
	pl = encodeSend(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: &p, SequenceId: u64(1), NumMessages: proto.Int32(1)}}, &pulsarproto.MessageMetadata{ProducerName: proto.String("x"), SequenceId: u64(1), PublishTime: u64(1)}, []byte("x"))
	pl[len(pl)-1] ^= 1
	r.malformed("SEND with a wrong checksum", x, "SEND, last byte flipped", pl)
	x = r.shaken()
	p = r.producer(x, r.topic("j"), true)
	r.malformed("SEND without payload", x, "SEND command only", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: &p, SequenceId: u64(1), NumMessages: proto.Int32(1)}})))
	r.malformed("ACK for an unknown consumer, with request_id", r.shaken(), "ACK consumer_id=99", encodeFrame(encode(func() *pulsarproto.BaseCommand {
		b := ackCommand(99, individual, nil, &pulsarproto.MessageIdData{LedgerId: u64(1), EntryId: u64(1)})
		b.Ack.RequestId = u64(5)
		return b
	}())))
}

// malformedExtra adds what was not asked for.
func malformedExtra(r *recording) {
	r.malformed("extra bytes after an NEW_TXN command", r.shaken(), "NEW_TXN with 5 bytes of payload", func() []byte {
		b := newTxnCommand(u64(60000), u64(0))
		b.NewTxn.RequestId = u64(9)
		f := encodeFrame(encode(b))
		f = append(f, 1, 2, 3, 4, 5)
		f[3] += 5
		return f
	}())
	r.malformed("unknown field in BaseCommand", r.shaken(), "NEW_TXN plus field 999", func() []byte {
		b := newTxnCommand(u64(60000), u64(0))
		b.NewTxn.RequestId = u64(9)
		return encodeFrame(append(encode(b), 0xba, 0x3e, 1, 0x41))
	}())
}

// shaken is a connection that has shaken hands, and whose CONNECTED is not shown.
func (r *recording) shaken() *connection {
	x := r.dial()
	x.takeEvents(true)
	return x
}
