package ledger

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

func sampleBlocks() []Block {
	return []Block{
		{Written: 5, Entries: []Entry{{Payload: []byte("x"), NumMessages: 1}}},
		{Written: 1 << 40, InTxn: true, Txn: txn.ID{Most: 3, Least: 1 << 60}, Entries: []Entry{
			{Producer: "p", SequenceID: 1, HighestSequenceID: 4, NumMessages: 4, PublishTime: 1700000000000, IsBatch: true, Payload: bytes.Repeat([]byte("ab"), 500)},
			{Producer: "standalone-0-1", SequenceID: 1 << 63, NumMessages: 1, IsChunk: true},
		}},
	}
}

func TestBlockComesBackTheSame(t *testing.T) {
	for _, b := range sampleBlocks() {
		last := Position{9, 100}
		for i := range b.Entries {
			e := &b.Entries[i]
			e.Position = Position{9, 101 - uint64(len(b.Entries)) + uint64(i)}
			e.Txn, e.InTxn = b.Txn, b.InTxn
			if e.Payload == nil {
				e.Payload = []byte{}
			}
		}
		encoded := b.Encode()
		got, err := DecodeBlock(last, encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, b) {
			t.Fatalf("%+v, want %+v", got, b)
		}
		if limit := BlockOverhead + len(b.Entries)*(EntryOverhead+len("standalone-0-1")) + 1000; len(encoded) > limit {
			t.Fatalf("%d bytes, more than the bound %d", len(encoded), limit)
		}
		for i := range encoded {
			damaged := bytes.Clone(encoded)
			damaged[i] ^= 0x40
			if _, err := DecodeBlock(last, damaged); err == nil {
				t.Fatalf("byte %d damaged and not noticed", i)
			}
		}
	}
}

func TestBlockBeforeTheLedgersStartIsRefused(t *testing.T) {
	b := sampleBlocks()[1]
	if _, err := DecodeBlock(Position{1, 0}, b.Encode()); err == nil {
		t.Fatal("two entries, the last with id 0")
	}
}

func FuzzDecodeBlock(f *testing.F) {
	for _, b := range sampleBlocks() {
		f.Add(b.Encode())
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		last := Position{1, 1 << 40}
		b, err := DecodeBlock(last, value)
		if err != nil {
			return
		}
		again, err := DecodeBlock(last, b.Encode())
		if err != nil || !reflect.DeepEqual(b, again) {
			t.Fatalf("%v: %+v, want %+v", err, again, b)
		}
	})
}
