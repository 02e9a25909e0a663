package etcdmodel

import (
	"bytes"
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func (m *Model) applyRange(r *pb.RangeRequest, at int64) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	newest := m.store.revision
	if at != 0 {
		newest = at
	}
	if r.Revision > 0 || at != 0 {
		if err := m.store.readable(orNewest(r.Revision, newest), newest); err != nil {
			return nil, err
		}
	}
	return m.store.read(r, newest), nil
}

func orNewest(revision, newest int64) int64 {
	if revision <= 0 {
		return newest
	}
	return revision
}

// read answers a read whose revision is readable, while the newest is newest. A target without an order sorts only the first keys
// that etcd looked at, one more than the limit (etcdserver/txn/range.go).
func (s *store) read(r *pb.RangeRequest, newest int64) *pb.RangeResponse {
	response := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: newest}, Kvs: []*mvccpb.KeyValue{}}
	revision := orNewest(r.Revision, newest)
	all := r.SortOrder != pb.RangeRequest_NONE || bounded(r)
	for _, h := range s.within(r.Key, r.RangeEnd) {
		v := h.at(revision)
		if v == nil {
			continue
		}
		response.Count++
		if r.CountOnly || !all && r.Limit > 0 && response.Count > r.Limit+1 {
			continue
		}
		if inBounds(r, v) {
			response.Kvs = append(response.Kvs, h.keyValue(v))
		}
	}
	if r.CountOnly {
		return response
	}
	order(r, response.Kvs)
	response.More = r.Limit > 0 && int64(len(response.Kvs)) > r.Limit
	if response.More {
		response.Kvs = response.Kvs[:r.Limit]
	}
	if r.KeysOnly {
		withoutValues(response.Kvs, r.SortTarget != pb.RangeRequest_VALUE)
	}
	return response
}

func bounded(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

func inBounds(r *pb.RangeRequest, v *version) bool {
	return v.main >= r.MinModRevision && (r.MaxModRevision == 0 || v.main <= r.MaxModRevision) &&
		v.created >= r.MinCreateRevision && (r.MaxCreateRevision == 0 || v.created <= r.MaxCreateRevision)
}

// withoutValues makes an answer one of keys only. etcd reads it from its index, which knows no leases, unless the order needs
// values.
func withoutValues(found []*mvccpb.KeyValue, fromIndex bool) {
	for _, kv := range found {
		kv.Value = nil
		if fromIndex {
			kv.Lease = 0
		}
	}
}

func order(r *pb.RangeRequest, found []*mvccpb.KeyValue) {
	less := func(a, b *mvccpb.KeyValue) int {
		switch r.SortTarget {
		case pb.RangeRequest_VERSION:
			return cmp.Compare(a.Version, b.Version)
		case pb.RangeRequest_CREATE:
			return cmp.Compare(a.CreateRevision, b.CreateRevision)
		case pb.RangeRequest_MOD:
			return cmp.Compare(a.ModRevision, b.ModRevision)
		case pb.RangeRequest_VALUE:
			return bytes.Compare(a.Value, b.Value)
		}
		return bytes.Compare(a.Key, b.Key)
	}
	slices.SortStableFunc(found, func(a, b *mvccpb.KeyValue) int {
		if r.SortOrder == pb.RangeRequest_DESCEND {
			return less(b, a)
		}
		return less(a, b)
	})
}
