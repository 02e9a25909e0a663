package cursor

import (
	"bytes"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

func FuzzRestore(f *testing.F) {
	f.Add(EncodeFrontier(ledger.Position{Ledger: 3, Entry: 7}))
	f.Add([]byte{1})
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := Restore(value)
		if err != nil {
			return
		}
		if again := EncodeFrontier(c.frontier); !bytes.Equal(again, value) {
			t.Errorf("%x encodes back as %x", value, again)
		}
	})
}

func FuzzRestoreBucket(f *testing.F) {
	f.Add(uint64(0), []byte{0b101})
	f.Add(uint64(5), bytes.Repeat([]byte{0xff}, BucketEntries/8))
	f.Add(^uint64(0), []byte{1})
	f.Fuzz(func(t *testing.T, index uint64, value []byte) {
		c := New(ledger.Position{})
		b := Bucket{Ledger: 1, Index: index}
		if c.RestoreBucket(b, value) != nil {
			return
		}
		for i := range BucketEntries {
			p := ledger.Position{Ledger: 1, Entry: b.first().Entry + uint64(i)}
			want := i/8 < len(value) && value[i/8]&(1<<(i%8)) != 0
			if c.Done(p) != want {
				t.Fatalf("entry %d of %x: done %t, want %t", i, value, c.Done(p), want)
			}
		}
	})
}
