package etcdstore

import (
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Store is an etcd in use: a member of its own in this process (Open), or a cluster that others run (Connect).
type Store struct {
	client       *clientv3.Client
	coordinators uint64
	limits       limits
	failure      *failure
	care         care

	closeOnce sync.Once
	closeErr  error
}

// limits are what one transaction of a store may have.
type limits struct{ txnOps, requestBytes int }

// care is what keeps a store usable. The methods are those of Store.
type care interface {
	wrote(n int)
	pin(rev int64) (release func())
	away() string
	space() Space
	spaceChanged() <-chan struct{}
	close() error
}

// Client is the client of the store. It is closed by Close.
func (s *Store) Client() *clientv3.Client { return s.client }

// Coordinators is the number of transaction coordinators, as stored when the store was opened.
func (s *Store) Coordinators() uint64 { return s.coordinators }

// MaxTxnOps limits the compares, the then-operations and the else-operations of one transaction, each.
func (s *Store) MaxTxnOps() int { return s.limits.txnOps }

// MaxRequestBytes is the size of the largest request that the store takes.
func (s *Store) MaxRequestBytes() int { return s.limits.requestBytes }

// Wrote counts one request that wrote n bytes of keys and values, so that history and raft's log are cut, and Space
// changes, in time. Whoever writes calls it for each request. It does not block.
func (s *Store) Wrote(n int) { s.care.wrote(n) }

// Pin keeps revision rev readable until release is called. A revision that is compacted already stays so. In a cluster
// others compact: a reader must begin again when its revision is gone.
func (s *Store) Pin(rev int64) (release func()) { return s.care.pin(rev) }

// Space says what the store has room for. It does not block. Embedded, what Wrote was told counts at once; room that is new
// does within a second. Of a cluster it is what was seen last, or what a refused write told.
func (s *Store) Space() Space { return s.care.space() }

// Away is why nobody stores anything, by the last look at the members, once in a second; empty: somebody does. An embedded store is
// never away.
func (s *Store) Away() string { return s.care.away() }

// SpaceChanged delivers a signal when Space may have changed, at once when more is refused than before. It has one receiver.
func (s *Store) SpaceChanged() <-chan struct{} { return s.care.spaceChanged() }

// Failed delivers the reason, once, if the store cannot be used any more. Nothing is acknowledged then; the process must end.
func (s *Store) Failed() <-chan error { return s.failure.reason }

// Close ends the use of the store. Requests under way end with an error. An embedded server is stopped and the data
// directory given up; after a failure it cannot be stopped: Close returns the reason, and the directory stays locked until
// the process ends.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.care.close() })
	return s.closeErr
}
