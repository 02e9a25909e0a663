package topic

import (
	"hash/fnv"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// chunkOwners bounds the messages in chunks of which a Shared subscription remembers who is given the rest. Those of
// producers that never sent the last chunk are forgotten by chance.
const chunkOwners = 1000

// chunkKey names the message whose chunk is read; 0 if it is no chunk. It lies above every hash of package stickykey.
func chunkKey(f *pulsarproto.DeliveryFields) waitKey {
	if f.Chunks < 2 {
		return 0
	}
	h := fnv.New64a()
	h.Write(f.Producer)
	h.Write([]byte{0})
	h.Write(f.UUID)
	return waitKey(h.Sum64() | 1<<63)
}

// chunkOwner returns who is given the chunks of a message: who had the one before, else who takes messages now.
//
// Source: SharedConsumerAssignor.
func (s *subscription) chunkOwner(key waitKey) *consumer {
	if c := s.chunks[key]; c != nil {
		return c
	}
	c := s.receiver()
	if c == nil {
		return nil
	}
	for other := range s.chunks {
		if len(s.chunks) < chunkOwners {
			break
		}
		delete(s.chunks, other)
	}
	if s.chunks == nil {
		s.chunks = make(map[waitKey]*consumer)
	}
	s.chunks[key] = c
	return c
}

// chunkGiven forgets the owner with the last chunk.
func (s *subscription) chunkGiven(key waitKey, f *pulsarproto.DeliveryFields) {
	if f.ChunkID >= f.Chunks-1 {
		delete(s.chunks, key)
	}
}

// leaveChunks forgets what c is given.
func (s *subscription) leaveChunks(c *consumer) {
	for key, owner := range s.chunks {
		if owner == c {
			delete(s.chunks, key)
		}
	}
}
