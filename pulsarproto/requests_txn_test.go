package pulsarproto

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestAppendTxnRequests(t *testing.T) {
	name := strings.Repeat("n", 200)
	tests := []struct {
		frame []byte
		want  *BaseCommand
	}{
		{AppendNewTxn(nil, 1<<40, 0, 60_000, ""), &BaseCommand{Type: BaseCommand_NEW_TXN.Enum(), NewTxn: &CommandNewTxn{
			RequestId: new(uint64(1 << 40)), TxnTtlSeconds: new(uint64(60_000)), TcId: new(uint64(0))}}},
		{AppendNewTxn(nil, 1, 1<<63, 0, name), &BaseCommand{Type: BaseCommand_NEW_TXN.Enum(), NewTxn: &CommandNewTxn{
			RequestId: new(uint64(1)), TxnTtlSeconds: new(uint64(0)), TcId: new(uint64(1 << 63)), ClientName: &name}}},
		{AppendEndTxn(nil, 7, 3, 1<<50, TxnAction_COMMIT, ""), &BaseCommand{Type: BaseCommand_END_TXN.Enum(), EndTxn: &CommandEndTxn{
			RequestId: new(uint64(7)), TxnidMostBits: new(uint64(3)), TxnidLeastBits: new(uint64(1 << 50)),
			TxnAction: TxnAction_COMMIT.Enum()}}},
		{AppendEndTxn(nil, 7, 0, 1, TxnAction_ABORT, name), &BaseCommand{Type: BaseCommand_END_TXN.Enum(), EndTxn: &CommandEndTxn{
			RequestId: new(uint64(7)), TxnidMostBits: new(uint64(0)), TxnidLeastBits: new(uint64(1)),
			TxnAction: TxnAction_ABORT.Enum(), ClientName: &name}}},
	}
	for _, test := range tests {
		frame, err := NewFrameReader(bufio.NewReader(bytes.NewReader(test.frame)), testMaxMessageSize).ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		got := new(BaseCommand)
		if err := proto.Unmarshal(frame.Command, got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, test.want) {
			t.Errorf("got %v, want %v", got, test.want)
		}
	}
}
