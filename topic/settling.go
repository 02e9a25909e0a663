package topic

import (
	"sync"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// settling keeps apart, per transaction, what the topic itself writes about it and a settlement, which is in a write of the
// coordinator. While one is under way the other waits (the topic) or is not possible (the settlement). It is used from any
// goroutine.
type settling struct {
	mu            sync.Mutex // guards the rest
	open          bool       // settlements may begin
	subscriptions map[string]keyspace.Subscription
	taken         map[txn.ID]int      // by the topic, how often
	under         map[txn.ID][]string // settlements under way, with their subscriptions
	unfolded      int                 // committed subscriptions whose acknowledgements are not in a stored cursor yet
}

// maxUnfolded bounds the commits of a topic that a load would find beside the cursors.
const maxUnfolded = 4096

func newSettling() settling {
	return settling{
		open: true, subscriptions: make(map[string]keyspace.Subscription), taken: make(map[txn.ID]int), under: make(map[txn.ID][]string),
	}
}

// begin begins a settlement of id and returns the keys of its subscriptions, or false if that is not possible.
func (s *settling) begin(id txn.ID, subscriptions []string) (keys []keyspace.Subscription, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.under[id]; !s.open || twice || s.taken[id] > 0 || s.unfolded+len(subscriptions) > maxUnfolded {
		return nil, false
	}
	for _, name := range subscriptions {
		key, found := s.subscriptions[name]
		if !found {
			return nil, false
		}
		keys = append(keys, key)
	}
	s.under[id] = subscriptions
	return keys, true
}

// end ends a settlement: what it did is known, and in memory. The topic has to look again at what waits.
func (s *settling) end(id txn.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.under, id)
}

// take lets the topic write about id until drop. It reports false while a settlement is under way.
func (s *settling) take(id txn.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.under[id]; is {
		return false
	}
	s.taken[id]++
	return true
}

func (s *settling) drop(id txn.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[id]--; s.taken[id] == 0 {
		delete(s.taken, id)
	}
}

// stop lets no settlement begin until start, and reports whether none is under way.
func (s *settling) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	return len(s.under) == 0
}

func (s *settling) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
}

// add makes settlements possible on a durable subscription.
func (s *settling) add(name string, keys keyspace.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions[name] = keys
}

// withdraw lets no settlement on a subscription begin until add, and reports whether none is under way.
func (s *settling) withdraw(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscriptions, name)
	for _, names := range s.under {
		for _, used := range names {
			if used == name {
				return false
			}
		}
	}
	return true
}

// fold counts commits whose acknowledgements are to be stored with a cursor, or are no more.
func (s *settling) fold(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfolded += n
}
