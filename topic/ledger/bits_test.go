package ledger

import (
	"slices"
	"testing"
)

func TestAckedBits(t *testing.T) {
	cases := []struct {
		name   string
		ackSet []int64
		size   int
		acked  []int
	}{
		{"one of three", []int64{0b101}, 3, []int{1}},
		{"bits beyond the batch do not count", []int64{^int64(0b111)}, 2, []int{0, 1}},
		{"all ones acknowledges nothing", []int64{-1}, 10, nil},
		{"zero words are cut off at the end", []int64{-1}, 66, []int{64, 65}},
		{"a negative word", []int64{-2, -1}, 70, []int{0}},
		{"more words than the batch has", []int64{0, 0, 0}, 1, []int{0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := AckedBits(c.ackSet, c.size)
			if len(got) != (c.size+63)/64 || got.Count() != len(c.acked) {
				t.Fatalf("%b, want indexes %v", got, c.acked)
			}
			for _, i := range c.acked {
				if got[i/64]&(1<<(i%64)) == 0 {
					t.Fatalf("%b, want indexes %v", got, c.acked)
				}
			}
		})
	}
}

func TestBitsArithmetic(t *testing.T) {
	a, b := Bits{0b0110}, Bits{0b0011}
	for name, pair := range map[string][2]Bits{
		"or": {a.Or(b), {0b0111}}, "and": {a.And(b), {0b0010}}, "andnot": {a.AndNot(b), {0b0100}}, "or nil": {Bits(nil).Or(a), a},
		"all": {AllBits(66), {^uint64(0), 0b11}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %b, want %b", name, pair[0], pair[1])
		}
	}
	if !a.Overlaps(b) || a.Overlaps(Bits{0b1001}) || a.Overlaps(nil) || a.Empty() || !(Bits{0, 0}).Empty() {
		t.Error("overlap or emptiness is wrong")
	}
	if got := (Bits{1 << 63}).AckSet(); got[0] >= 0 {
		t.Errorf("ack set %v, want the highest bit", got)
	}
}
