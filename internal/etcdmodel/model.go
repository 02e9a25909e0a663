package etcdmodel

import (
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// defaultMaxTxnOps and defaultMaxRequestBytes are etcd's (embed.DefaultMaxTxnOps, DefaultMaxRequestBytes).
	defaultMaxTxnOps       = 128
	defaultMaxRequestBytes = 1.5 * 1024 * 1024
	// defaultMinLease is etcd's with its default election timeout, 1.5 times 1 s in whole seconds (etcdserver.NewServer).
	defaultMinLease = 2 * time.Second
)

// Options are the zero value or:
type Options struct {
	// MaxTxnOps bounds the operations of a transaction, branches and compares each; nested ones get what is left. Default 128.
	MaxTxnOps int
	// MaxRequestBytes bounds a write. Default 1.5 MiB.
	MaxRequestBytes int
	// MinLease is the shortest lease, in whole seconds: shorter ones are made as long. Default 2 s.
	MinLease time.Duration
	// KeepExpired leaves leases that have run out, and their keys, until Expire is called for them. Else they go when their time
	// is over to the nanosecond; a real etcd takes up to a second more.
	KeepExpired bool
}

// Model is one store.
type Model struct {
	options Options

	mu      sync.Mutex
	store   store
	leases  leases
	noSpace bool
	watches []*watch // in the order of their creation
}

// New returns an empty store at revision 1.
func New(options Options) *Model {
	if options.MaxTxnOps == 0 {
		options.MaxTxnOps = defaultMaxTxnOps
	}
	if options.MaxRequestBytes == 0 {
		options.MaxRequestBytes = defaultMaxRequestBytes
	}
	if options.MinLease == 0 {
		options.MinLease = defaultMinLease
	}
	return &Model{options: options, store: newStore(), leases: newLeases()}
}

// Close stops the timer of the leases. Close the clients first.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leases.stop()
}

// Revision is the newest.
func (m *Model) Revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store.revision
}

// SetNoSpace raises or disarms the NOSPACE alarm, with which etcd refuses, without applying it, every put and every new lease.
func (m *Model) SetNoSpace(raised bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noSpace = raised
}

// Compact forgets what no read at revision or later can see, as a client's Compact does but without a gate.
func (m *Model) Compact(revision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.compact(revision)
}

func (m *Model) compact(revision int64) error {
	if err := m.store.compact(revision); err != nil {
		return err
	}
	m.wakeWatches()
	return nil
}

// KeyValue is one key as it is now.
type KeyValue struct {
	Key, Value                           string
	CreateRevision, ModRevision, Version int64
	Lease                                int64
}

// Contents lists all keys that begin with prefix, sorted.
func (m *Model) Contents(prefix string) []KeyValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []KeyValue
	for _, h := range m.store.within([]byte(prefix), []byte{0}) {
		if !strings.HasPrefix(h.key, prefix) {
			break
		}
		if v := h.at(m.store.revision); v != nil {
			found = append(found, KeyValue{h.key, string(v.value), v.created, v.main, v.version, v.lease})
		}
	}
	return found
}

// apply performs a request on the store. at is the revision that a member which lags behind knows; 0: the newest.
func (m *Model) apply(message any, at int64) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r := message.(type) {
	case *pb.RangeRequest:
		return m.applyRange(r, at)
	case *pb.PutRequest:
		return m.applyPut(r)
	case *pb.DeleteRangeRequest:
		return m.applyDelete(r)
	case *pb.TxnRequest:
		return m.applyTxn(r, at)
	case *pb.CompactionRequest:
		if err := m.compact(r.Revision); err != nil {
			return nil, err
		}
		return &pb.CompactionResponse{Header: m.header()}, nil
	case *pb.LeaseGrantRequest:
		return m.grant(r)
	case *pb.LeaseRevokeRequest:
		return m.revoke(r)
	case *pb.LeaseKeepAliveRequest:
		return m.renew(r)
	case *pb.LeaseTimeToLiveRequest:
		return m.timeToLive(r)
	case *pb.LeaseLeasesRequest:
		return m.listLeases(), nil
	case *delivery:
		return m.deliver(r.watch), nil
	case *pb.WatchCreateRequest:
		return m.createWatch(r), nil
	}
	panic(fmt.Sprintf("request %T", message))
}

func (m *Model) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: m.store.revision} }
