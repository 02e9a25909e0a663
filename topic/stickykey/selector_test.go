package stickykey

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAutoSplit is the split of Pulsar's own test with four consumers, scaled.
func TestAutoSplit(t *testing.T) {
	var s AutoSplit
	for m := range Member(4) {
		if err := s.Add(m, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []part{{Size / 4, 2}, {Size / 2, 1}, {Size / 4 * 3, 3}, {Size, 0}}
	if !slices.Equal(s.parts, want) {
		t.Fatalf("parts %v, want %v", s.parts, want)
	}
	s.Remove(0)
	if m, _ := s.Select(Size - 1); m != 3 {
		t.Fatalf("the highest part went to %d, want 3", m)
	}
	s.Remove(2)
	if m, _ := s.Select(1); m != 1 {
		t.Fatalf("the lowest part went to %d, want 1", m)
	}
}

// TestThreeKeysSpread: the keys of the official Go client's suite reach both of two consumers.
func TestThreeKeysSpread(t *testing.T) {
	for _, prefix := range []string{"key-shared-", "key"} {
		var s AutoSplit
		_, _ = s.Add(1, "", nil), s.Add(2, "", nil)
		seen := make(map[Member]bool)
		for i := range 4 {
			m, _ := s.Select(Hash([]byte(fmt.Sprint(prefix, i))))
			seen[m] = true
		}
		if len(seen) != 2 {
			t.Errorf("keys %s0 and on reach %d of 2", prefix, len(seen))
		}
	}
}

func TestFixedRefuses(t *testing.T) {
	var f Fixed
	if err := f.Add(1, "", []Range{{100, 200}, {0, 10}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ranges []Range
		want   error
	}{
		{nil, ErrNoRanges},
		{[]Range{{5, 4}}, ErrBackward},
		{[]Range{{-1, 4}}, ErrOutside},
		{[]Range{{65535, 65536}}, ErrOutside},
		{[]Range{{300, 400}, {200, 250}}, ErrConflict},
		{[]Range{{50, 150}}, ErrConflict},
		{[]Range{{0, 65535}}, ErrConflict},
		{[]Range{{300, 400}, {400, 500}}, ErrConflict},
		{[]Range{{11, 99}, {201, 65535}}, nil},
	} {
		if err := f.Add(2, "", c.ranges); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%v: %v, want %v", c.ranges, err, c.want)
		}
	}
	for hash, want := range map[int]Member{10: 1, 11: 2, 99: 2, 100: 1, 200: 1, 201: 2, 65535: 2} {
		if m, _ := f.Select(hash); m != want {
			t.Errorf("hash %d belongs to %d, want %d", hash, m, want)
		}
	}
	f.Remove(2)
	if _, found := f.Select(50); found {
		t.Error("a hash of a member that is gone has a member")
	}
}

// TestRingOfOneName: consumers that are all called the same, or nothing, share the hashes.
func TestRingOfOneName(t *testing.T) {
	r := NewRing(100)
	for m := range Member(4) {
		if err := r.Add(m, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Remove(1)
	if err := r.Add(4, "", nil); err != nil {
		t.Fatal(err)
	}
	hashes := make(map[Member]int)
	for hash := range Size {
		m, _ := r.Select(hash)
		hashes[m]++
	}
	for _, m := range []Member{0, 2, 3, 4} {
		if hashes[m] < Size/8 {
			t.Errorf("member %d has %d of %d hashes", m, hashes[m], Size)
		}
	}
}

// TestSelectorsMoveLittle: whoever comes or goes, every hash has a member, and only hashes of that member move.
func TestSelectorsMoveLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Selector = &AutoSplit{}
		if rapid.Bool().Draw(t, "ring") {
			s = NewRing(rapid.IntRange(1, 100).Draw(t, "points"))
		}
		hashes := rapid.SliceOfN(rapid.IntRange(1, Size-1), 1, 50).Draw(t, "hashes")
		owner := make(map[int]Member)
		var present []Member
		for m := range Member(rapid.IntRange(1, 30).Draw(t, "steps")) {
			changed := m
			if len(present) > 0 && rapid.IntRange(0, 2).Draw(t, "goes") == 0 {
				i := rapid.IntRange(0, len(present)-1).Draw(t, "who")
				changed = present[i]
				present = slices.Delete(present, i, i+1)
				s.Remove(changed)
			} else {
				present = append(present, m)
				if err := s.Add(m, fmt.Sprint("c", m%7), nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, hash := range hashes {
				before, had := owner[hash]
				now, found := s.Select(hash)
				if found != (len(present) > 0) || found && !slices.Contains(present, now) {
					t.Fatalf("hash %d belongs to %d, %v; there are %v", hash, now, found, present)
				}
				if had && found && before != now && before != changed && now != changed {
					t.Fatalf("hash %d moved from %d to %d as %d came or went", hash, before, now, changed)
				}
				if owner[hash] = now; !found {
					delete(owner, hash)
				}
			}
		}
	})
}

// TestRingStaysInOrder: a member's points are put between those of the others, whatever comes and goes.
func TestRingStaysInOrder(t *testing.T) {
	r := NewRing(100)
	for m := range Member(200) {
		if err := r.Add(m, fmt.Sprint("c", m%150), nil); err != nil {
			t.Fatal(err)
		}
		if m%3 == 0 {
			r.Remove(m / 2)
		}
		if !slices.IsSortedFunc(r.points, point.compare) {
			t.Fatalf("the points are out of order with member %d", m)
		}
	}
	if len(r.points)%100 != 0 {
		t.Errorf("%d points, want 100 for each member", len(r.points))
	}
}
