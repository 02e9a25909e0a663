package recorder

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playMalformed writes what no client should.
func playMalformed(r *recording) {
	w := 1500 * time.Millisecond
	conn := func() *connection {
		x := r.dial()
		x.takeEvents(true)
		return x
	}
	con := encodeFrame(encode(connectCommand(20)))
	r.malformed("unknown type 99", conn(), "BaseCommand{type:99}", encodeFrame([]byte{0x08, 99}), w)
	r.malformed("unknown type 99 with field 99", conn(), "BaseCommand{type:99, 99:{1:5}}", encodeFrame([]byte{0x08, 99, 0x9a, 0x06, 2, 0x08, 5}), w)
	r.malformed("unknown type 1000", conn(), "BaseCommand{type:1000}", encodeFrame([]byte{0x08, 0xe8, 0x07}), w)
	r.malformed("no type", conn(), "BaseCommand{} (length 0)", encodeFrame(nil), w)
	r.malformed("type without body NEW_TXN", conn(), "BaseCommand{type:50}", encodeFrame([]byte{0x08, 50}), w)
	r.malformed("type without body END_TXN", conn(), "BaseCommand{type:56}", encodeFrame([]byte{0x08, 56}), w)
	r.malformed("type without body TC_CLIENT_CONNECT", conn(), "BaseCommand{type:62}", encodeFrame([]byte{0x08, 62}), w)
	r.malformed("type without body PING", conn(), "BaseCommand{type:18}", encodeFrame([]byte{0x08, 18}), w)
	r.malformed("response from a client NEW_TXN_RESPONSE", conn(), "NEW_TXN_RESPONSE request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN_RESPONSE.Enum(), NewTxnResponse: &pulsarproto.CommandNewTxnResponse{RequestId: u64(1)}})), w)
	r.malformed("response from a client END_TXN_RESPONSE", conn(), "END_TXN_RESPONSE request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN_RESPONSE.Enum(), EndTxnResponse: &pulsarproto.CommandEndTxnResponse{RequestId: u64(1)}})), w)
	r.malformed("response from a client TC_CLIENT_CONNECT_RESPONSE", conn(), "TC_CLIENT_CONNECT_RESPONSE", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE.Enum(), TcClientConnectResponse: &pulsarproto.CommandTcClientConnectResponse{RequestId: u64(1)}})), w)
	r.malformed("response from a client SUCCESS", conn(), "SUCCESS request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SUCCESS.Enum(), Success: &pulsarproto.CommandSuccess{RequestId: u64(1)}})), w)
	big := make([]byte, 4, 4+6<<20)
	big[0], big[1] = 0x00, 0x60 // 6 MiB
	r.malformed("frame of 6 MiB, header only", conn(), "total_size=6291456", big[:4], w)
	r.malformed("frame of 6 MiB, complete", conn(), "total_size=6291456 and that many zero bytes", big[:4+6<<20], w)
	big5 := make([]byte, 4)
	big5[0], big5[1], big5[2], big5[3] = 0x00, 0x50, 0x27, 0x00 // 5 MiB + 9984
	r.malformed("frame of 5 MiB + 9984, header only", conn(), "total_size=5252864", big5, w)
	r.malformed("frame of 2^32-1", conn(), "total_size=4294967295", []byte{0xff, 0xff, 0xff, 0xff}, w)
	r.malformed("zero length frame", conn(), "total_size=0", []byte{0, 0, 0, 0}, w)
	r.malformed("zero length frame, then PING", conn(), "total_size=0 twice", []byte{0, 0, 0, 0, 0, 0, 0, 0}, w)
	r.malformed("total 4, command 0", conn(), "00000004 00000000", []byte{0, 0, 0, 4, 0, 0, 0, 0}, w)
	r.malformed("command size larger than total", conn(), "total=10 command=100", append([]byte{0, 0, 0, 10, 0, 0, 0, 100}, make([]byte, 6)...), w)
	r.malformed("command size negative", conn(), "total=10 command=ffffffff", append([]byte{0, 0, 0, 10, 0xff, 0xff, 0xff, 0xff}, make([]byte, 6)...), w)
	r.malformed("http request", conn(), "GET / HTTP/1.1", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), w)
	r.malformed("http request before CONNECT", r.dialRaw(), "GET / HTTP/1.1", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), w)
	r.malformed("garbage command", conn(), "frame with 20 bytes of 0xff", encodeFrame([]byte(strings.Repeat("\xff", 20))), w)
	r.malformed("truncated protobuf", conn(), "END_TXN cut in the middle", encodeFrame(encode(endTxnCommand(txn.ID{Most: 0, Least: 5}, commit.Enum()))[:5]), w)
	end := endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum())
	r.malformed("END_TXN without request_id", conn(), "END_TXN most=0 least=2^40 action=COMMIT", encodeFrame(encode(end)), w)
	nw := newTxnCommand(u64(60000), u64(0))
	r.malformed("NEW_TXN without request_id", conn(), "NEW_TXN ttl=60000", encodeFrame(encode(nw)), w)
	r.malformed("TC_CLIENT_CONNECT without request_id", conn(), "TC_CLIENT_CONNECT tc_id=0", encodeFrame(encode(tcConnectCommand(0))), w)
	r.malformed("LOOKUP without topic", conn(), "LOOKUP request_id=1", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_LOOKUP.Enum(), LookupTopic: &pulsarproto.CommandLookupTopic{RequestId: u64(1)}})), w)
	r.malformed("second CONNECT", conn(), "CONNECT", con, w)
	r.malformed("CONNECT without client_version", r.dialRaw(), "CONNECT {}", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: &pulsarproto.CommandConnect{}})), w)
	b := newTxnCommand(u64(60000), u64(0))
	b.NewTxn.RequestId = u64(1)
	r.malformed("NEW_TXN before CONNECT", r.dialRaw(), "NEW_TXN", encodeFrame(encode(b)), w)
	b = lookupCommand(assignTopic)
	b.LookupTopic.RequestId = u64(1)
	r.malformed("LOOKUP before CONNECT", r.dialRaw(), "LOOKUP", encodeFrame(encode(b)), w)
	b = tcConnectCommand(0)
	b.TcClientConnectRequest.RequestId = u64(1)
	r.malformed("TC_CLIENT_CONNECT before CONNECT", r.dialRaw(), "TC_CLIENT_CONNECT_REQUEST", encodeFrame(encode(b)), w)
	r.malformed("PING before CONNECT", r.dialRaw(), "PING", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PING.Enum(), Ping: &pulsarproto.CommandPing{}})), w)
	x := r.dialRaw()
	b = newTxnCommand(u64(60000), u64(0))
	b.NewTxn.RequestId = u64(1)
	r.malformed("CONNECT and NEW_TXN in one write", x, "CONNECT, NEW_TXN", append(append([]byte{}, con...), encodeFrame(encode(b))...), w)
	x = conn()
	pl := encodeSend(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: u64(99), SequenceId: u64(1), NumMessages: proto.Int32(1)}}, &pulsarproto.MessageMetadata{ProducerName: proto.String("x"), SequenceId: u64(1), PublishTime: u64(1)}, []byte("x"))
	r.malformed("SEND for an unknown producer", x, "SEND producer_id=99", pl, w)
	x = conn()
	p := r.producer(x, r.topic("j"), true)
	pl = encodeSend(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: &p, SequenceId: u64(1), NumMessages: proto.Int32(1)}}, &pulsarproto.MessageMetadata{ProducerName: proto.String("x"), SequenceId: u64(1), PublishTime: u64(1)}, []byte("x"))
	pl[len(pl)-1] ^= 1
	r.malformed("SEND with a wrong checksum", x, "SEND, last byte flipped", pl, w)
	x = conn()
	p = r.producer(x, r.topic("j"), true)
	r.malformed("SEND without payload", x, "SEND command only", encodeFrame(encode(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: &pulsarproto.CommandSend{ProducerId: &p, SequenceId: u64(1), NumMessages: proto.Int32(1)}})), w)
	r.malformed("ACK for an unknown consumer, with request_id", conn(), "ACK consumer_id=99", encodeFrame(encode(func() *pulsarproto.BaseCommand {
		b := ackCommand(99, individual, nil, &pulsarproto.MessageIdData{LedgerId: u64(1), EntryId: u64(1)})
		b.Ack.RequestId = u64(5)
		return b
	}())), w)
	r.malformed("extra bytes after an NEW_TXN command", conn(), "NEW_TXN with 5 bytes of payload", func() []byte {
		b := newTxnCommand(u64(60000), u64(0))
		b.NewTxn.RequestId = u64(9)
		f := encodeFrame(encode(b))
		f = append(f, 1, 2, 3, 4, 5)
		f[3] += 5
		return f
	}(), w)
	r.malformed("unknown field in BaseCommand", conn(), "NEW_TXN plus field 999", func() []byte {
		b := newTxnCommand(u64(60000), u64(0))
		b.NewTxn.RequestId = u64(9)
		return encodeFrame(append(encode(b), 0xba, 0x3e, 1, 0x41))
	}(), w)
}
