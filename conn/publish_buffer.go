package conn

import (
	"sync"
	"sync/atomic"
)

// publishBuffer counts the bytes of unanswered sends on all connections.
//
// Source: BrokerService.pausedConnections; broker.conf maxMessagePublishBufferSizeInMB.
type publishBuffer struct {
	limit int64 // bytes; negative: none
	held  atomic.Int64
	waits atomic.Bool // waiting is not empty

	mu      sync.Mutex // guards everything below; nothing is locked inside it
	waiting map[*outbox]struct{}
}

func (b *publishBuffer) take(size int) { b.held.Add(int64(size)) }

// hasRoom reports whether size more bytes may be held. If not, o.wake is called when bytes are given back.
func (b *publishBuffer) hasRoom(o *outbox, size int) bool {
	if b.limit < 0 || b.held.Load()+int64(size) <= b.limit {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[o] = struct{}{}
	b.waits.Store(true)
	return b.held.Load()+int64(size) <= b.limit // or release may have looked before o was there
}

// release gives size bytes back and wakes those that wait for them. No outbox may be locked.
func (b *publishBuffer) release(size int) {
	if b.held.Add(-int64(size)) > b.limit || !b.waits.Load() {
		return
	}
	b.mu.Lock()
	woken := b.waiting
	b.waiting = make(map[*outbox]struct{})
	b.waits.Store(false)
	b.mu.Unlock()
	for o := range woken {
		o.wake()
	}
}

// forget ends the wait of o.
func (b *publishBuffer) forget(o *outbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, o)
}

// sizes is a queue of sizes in bytes.
type sizes struct {
	queue []int // from first on
	first int
	sum   int
}

func (s *sizes) push(size int) {
	if len(s.queue) == cap(s.queue) && s.first > len(s.queue)/2 {
		s.queue = append(s.queue[:0], s.queue[s.first:]...)
		s.first = 0
	}
	s.queue = append(s.queue, size)
	s.sum += size
}

// pop returns the oldest size; 0 if there is none.
func (s *sizes) pop() int {
	if s.len() == 0 {
		return 0
	}
	size := s.queue[s.first]
	s.first++
	s.sum -= size
	if s.len() == 0 {
		s.queue, s.first = s.queue[:0], 0
	}
	return size
}

func (s *sizes) len() int { return len(s.queue) - s.first }
