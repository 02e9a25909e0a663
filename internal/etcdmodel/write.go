package etcdmodel

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// writer is one write in progress. All that it changes is of one revision, which becomes the newest with the end of the write.
type writer struct {
	model   *Model
	begun   int64 // the newest revision before
	changed bool
}

func (m *Model) write() *writer { return &writer{model: m, begun: m.store.revision} }

// revision is what the write itself reads.
func (w *writer) revision() int64 {
	if w.changed {
		return w.begun + 1
	}
	return w.begun
}

func (w *writer) end() {
	if w.changed {
		w.model.store.revision = w.begun + 1
		w.model.wakeWatches()
	}
}

func (m *Model) applyPut(r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	if err := m.checkSize(r); err != nil {
		return nil, err
	}
	if m.noSpace {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	if err := m.admitPut(r); err != nil {
		return nil, err
	}
	w := m.write()
	defer w.end()
	return w.put(r), nil
}

// admitPut is what a put needs of the store: its lease, and the key whose value or lease it keeps.
func (m *Model) admitPut(r *pb.PutRequest) error {
	if r.Lease != 0 && m.leases.byID[r.Lease] == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	if (r.IgnoreValue || r.IgnoreLease) && m.store.get(r.Key, m.store.revision) == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	return nil
}

func (s *store) get(key []byte, revision int64) *mvccpb.KeyValue {
	for _, h := range s.within(key, nil) {
		if v := h.at(revision); v != nil {
			return h.keyValue(v)
		}
	}
	return nil
}

func (w *writer) put(r *pb.PutRequest) *pb.PutResponse {
	m := w.model
	before := m.store.get(r.Key, w.revision())
	value, lease := r.Value, r.Lease
	if r.IgnoreValue {
		value = before.GetValue()
	}
	if r.IgnoreLease {
		lease = before.GetLease()
	}
	m.leases.attach(string(r.Key), before.GetLease(), lease)
	m.store.put(w.begun+1, string(r.Key), value, lease)
	w.changed = true
	response := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: w.begun + 1}}
	if r.PrevKv {
		response.PrevKv = before
	}
	return response
}

func (m *Model) applyDelete(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := m.checkSize(r); err != nil {
		return nil, err
	}
	w := m.write()
	defer w.end()
	return w.delete(r), nil
}

func (w *writer) delete(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	response := &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{}}
	now := w.revision()
	for _, h := range w.model.store.within(r.Key, r.RangeEnd) {
		v := h.at(now)
		if v == nil {
			continue
		}
		if r.PrevKv {
			response.PrevKvs = append(response.PrevKvs, h.keyValue(v))
		}
		w.remove(h, v)
		response.Deleted++
	}
	response.Header.Revision = w.revision()
	return response
}

func (w *writer) remove(h *history, v *version) {
	w.model.leases.attach(h.key, v.lease, 0)
	w.model.store.remove(w.begun+1, h)
	w.changed = true
}
