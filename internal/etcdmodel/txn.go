package etcdmodel

import (
	"bytes"
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (m *Model) applyTxn(r *pb.TxnRequest, at int64) (*pb.TxnResponse, error) {
	if err := m.checkWholeTxn(r); err != nil {
		return nil, err
	}
	newest := m.store.revision
	if at != 0 {
		newest = at
	}
	chosen := m.store.choose(r, newest)
	if err := m.admitTxn(r, chosen, newest); err != nil {
		return nil, err
	}
	w := m.write()
	w.begun = newest
	response := w.txn(r, chosen)
	w.end()
	return response, nil
}

func (m *Model) checkWholeTxn(r *pb.TxnRequest) error {
	if err := checkTxn(r, m.options.MaxTxnOps); err != nil {
		return err
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		if _, err := checkOverlaps(ops); err != nil {
			return err
		}
	}
	if readOnly(r) {
		return nil
	}
	if err := m.checkSize(r); err != nil {
		return err
	}
	if m.noSpace && puts(r) {
		return rpctypes.ErrGRPCNoSpace
	}
	return nil
}

// readOnly says whether a transaction is evaluated by the member that is asked. One with a nested transaction is not, whatever
// that does.
func readOnly(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}

// branch is which of its branches a transaction takes, and those of the transactions nested in it, by index.
type branch struct {
	then   bool
	nested map[int]branch
}

func (b branch) ops(r *pb.TxnRequest) []*pb.RequestOp {
	if b.then {
		return r.Success
	}
	return r.Failure
}

// choose evaluates all compares, nested ones too, against the state before the transaction.
func (s *store) choose(r *pb.TxnRequest, revision int64) branch {
	b := branch{then: true}
	for _, c := range r.Compare {
		if !s.holds(c, revision) {
			b.then = false
			break
		}
	}
	for i, op := range b.ops(r) {
		if nested := op.GetRequestTxn(); nested != nil {
			if b.nested == nil {
				b.nested = map[int]branch{}
			}
			b.nested[i] = s.choose(nested, revision)
		}
	}
	return b
}

// holds says whether a compare is true of every key in its range, or, if there is none, of a key whose numbers are all 0 and
// whose value compares with nothing.
func (s *store) holds(c *pb.Compare, revision int64) bool {
	found := false
	for _, h := range s.within(c.Key, c.RangeEnd) {
		v := h.at(revision)
		if v == nil {
			continue
		}
		found = true
		if !compare(c, v) {
			return false
		}
	}
	return found || c.Target != pb.Compare_VALUE && compare(c, &version{})
}

// changes says whether the chosen branches put anything, or delete anything that is there.
func (s *store) changes(r *pb.TxnRequest, chosen branch) bool {
	for i, op := range chosen.ops(r) {
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			return true
		case *pb.RequestOp_RequestDeleteRange:
			if s.any(o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd) {
				return true
			}
		case *pb.RequestOp_RequestTxn:
			if s.changes(o.RequestTxn, chosen.nested[i]) {
				return true
			}
		}
	}
	return false
}

// any says whether there is a key in a range.
func (s *store) any(key, end []byte) bool {
	return slices.ContainsFunc(s.within(key, end), func(h *history) bool { return h.at(s.revision) != nil })
}

func compare(c *pb.Compare, v *version) bool {
	var result int
	switch c.Target {
	case pb.Compare_VERSION:
		result = cmp.Compare(v.version, c.GetVersion())
	case pb.Compare_CREATE:
		result = cmp.Compare(v.created, c.GetCreateRevision())
	case pb.Compare_MOD:
		result = cmp.Compare(v.main, c.GetModRevision())
	case pb.Compare_VALUE:
		result = bytes.Compare(v.value, c.GetValue())
	case pb.Compare_LEASE:
		result = cmp.Compare(v.lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return result == 0
	case pb.Compare_NOT_EQUAL:
		return result != 0
	case pb.Compare_GREATER:
		return result > 0
	}
	return result < 0
}

// admitTxn refuses a transaction, before anything of it is applied, for one operation of the chosen branches that cannot be.
func (m *Model) admitTxn(r *pb.TxnRequest, chosen branch, newest int64) error {
	for i, op := range chosen.ops(r) {
		var err error
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			if o.RequestRange.Revision != 0 {
				err = m.store.readable(o.RequestRange.Revision, newest)
			}
		case *pb.RequestOp_RequestPut:
			err = m.admitPut(o.RequestPut)
		case *pb.RequestOp_RequestTxn:
			err = m.admitTxn(o.RequestTxn, chosen.nested[i], newest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) txn(r *pb.TxnRequest, chosen branch) *pb.TxnResponse {
	response := &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: chosen.then, Responses: []*pb.ResponseOp{}}
	for i, op := range chosen.ops(r) {
		answer := &pb.ResponseOp{}
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			answer.Response = &pb.ResponseOp_ResponseRange{ResponseRange: w.model.store.read(o.RequestRange, w.revision())}
		case *pb.RequestOp_RequestPut:
			answer.Response = &pb.ResponseOp_ResponsePut{ResponsePut: w.put(o.RequestPut)}
		case *pb.RequestOp_RequestDeleteRange:
			answer.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: w.delete(o.RequestDeleteRange)}
		case *pb.RequestOp_RequestTxn:
			nested := w.txn(o.RequestTxn, chosen.nested[i])
			nested.Header.Revision = 0 // etcd fills in that of the outermost only
			answer.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: nested}
		}
		response.Responses = append(response.Responses, answer)
	}
	response.Header.Revision = w.revision()
	return response
}
