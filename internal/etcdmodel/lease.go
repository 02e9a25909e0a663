package etcdmodel

import (
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// longestLease is etcd's, in seconds (lease.MaxLeaseTTL).
const longestLease = 9_000_000_000

// leases are those that live. The timer runs towards the first end.
type leases struct {
	byID  map[int64]*lease
	next  int64 // the id that the next lease gets which asks for none
	timer *time.Timer
}

type lease struct {
	id   int64
	ttl  time.Duration
	ends time.Time
	keys map[string]bool
}

func newLeases() leases { return leases{byID: map[int64]*lease{}, next: 1} }

// sorted lists the leases by id.
func (l *leases) sorted() []*lease {
	var all []*lease
	for _, id := range slices.Sorted(maps.Keys(l.byID)) {
		all = append(all, l.byID[id])
	}
	return all
}

func (l *leases) attach(key string, before, now int64) {
	if old := l.byID[before]; old != nil {
		delete(old.keys, key)
	}
	if fresh := l.byID[now]; fresh != nil {
		fresh.keys[key] = true
	}
}

func (l *leases) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// schedule sets the timer to the first end, unless expired leases are kept.
func (m *Model) schedule() {
	m.leases.stop()
	if m.options.KeepExpired || len(m.leases.byID) == 0 {
		return
	}
	var first time.Time
	for _, l := range m.leases.byID {
		if first.IsZero() || l.ends.Before(first) {
			first = l.ends
		}
	}
	m.leases.timer = time.AfterFunc(time.Until(first), m.expireAll)
}

// expireAll ends every lease that has run out, one after the other by id.
func (m *Model) expireAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.leases.expired() {
		m.drop(l)
	}
	m.schedule()
}

// Expired lists the leases that have run out and are still there (Options.KeepExpired), by id.
func (m *Model) Expired() []clientv3.LeaseID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []clientv3.LeaseID
	for _, l := range m.leases.expired() {
		ids = append(ids, clientv3.LeaseID(l.id))
	}
	return ids
}

// Expire ends a lease, if it has run out, and deletes its keys at one revision.
func (m *Model) Expire(id clientv3.LeaseID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.leases.byID[int64(id)]; l != nil && l.expired(time.Now()) {
		m.drop(l)
		m.schedule()
	}
}

func (l *lease) expired(now time.Time) bool { return !l.ends.After(now) }

// expired lists, by id, the leases that have run out.
func (l *leases) expired() []*lease {
	now := time.Now()
	return slices.DeleteFunc(l.sorted(), func(l *lease) bool { return !l.expired(now) })
}

// drop ends a lease and deletes its keys.
func (m *Model) drop(l *lease) {
	w := m.write()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		w.delete(&pb.DeleteRangeRequest{Key: []byte(key)})
	}
	delete(m.leases.byID, l.id)
	w.end()
}

func (m *Model) grant(r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if m.noSpace {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	if r.TTL > longestLease {
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	if m.leases.byID[r.ID] != nil {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	id := r.ID
	for id == 0 || m.leases.byID[id] != nil {
		id = m.leases.next
		m.leases.next++
	}
	l := &lease{id: id, ttl: max(time.Duration(r.TTL)*time.Second, m.options.MinLease), keys: map[string]bool{}}
	l.ends = time.Now().Add(l.ttl)
	m.leases.byID[id] = l
	m.schedule()
	return &pb.LeaseGrantResponse{Header: m.header(), ID: id, TTL: int64(l.ttl / time.Second)}, nil
}

func (m *Model) revoke(r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	l := m.leases.byID[r.ID]
	if l == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	m.drop(l)
	m.schedule()
	return &pb.LeaseRevokeResponse{Header: m.header()}, nil
}

// renew answers a ttl of 0 for a lease that is gone. One that has run out and is kept goes now: etcd answers its renewal only
// then.
func (m *Model) renew(r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	response := &pb.LeaseKeepAliveResponse{Header: m.header(), ID: r.ID}
	l := m.leases.byID[r.ID]
	if l == nil {
		return response, nil
	}
	now := time.Now()
	if l.expired(now) {
		m.drop(l)
		m.schedule()
		return response, nil
	}
	l.ends = now.Add(l.ttl)
	m.schedule()
	response.TTL = int64(l.ttl / time.Second)
	return response, nil
}

func (m *Model) timeToLive(r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	l := m.leases.byID[r.ID]
	if l == nil {
		return &pb.LeaseTimeToLiveResponse{Header: m.header(), ID: r.ID, TTL: -1}, nil
	}
	response := &pb.LeaseTimeToLiveResponse{
		Header: m.header(), ID: r.ID, TTL: int64(time.Until(l.ends) / time.Second), GrantedTTL: int64(l.ttl / time.Second),
	}
	if r.Keys {
		for _, key := range slices.Sorted(maps.Keys(l.keys)) {
			response.Keys = append(response.Keys, []byte(key))
		}
	}
	return response, nil
}

func (m *Model) listLeases() *pb.LeaseLeasesResponse {
	response := &pb.LeaseLeasesResponse{Header: m.header(), Leases: []*pb.LeaseStatus{}}
	for _, l := range m.leases.sorted() {
		response.Leases = append(response.Leases, &pb.LeaseStatus{ID: l.id})
	}
	return response
}
