package stickykey

import "github.com/twmb/murmur3"

// Size is one more than the greatest hash.
//
// Source: StickyKeyConsumerSelector.DEFAULT_RANGE_SIZE.
const Size = 1 << 16

// Hash is the hash of a key: 1 to 65535, as Pulsar never uses 0.
//
// Source: StickyKeyConsumerSelectorUtils.makeStickyKeyHash; Murmur3_32Hash, which drops the sign.
func Hash(key []byte) int { return max(1, Murmur(key)%Size) }

// Murmur is Pulsar's Murmur3_32Hash: 31 bits.
func Murmur(data []byte) int { return int(murmur3.Sum32(data) & 0x7fffffff) }
