package etcdmodel

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"
)

// What etcd refuses before it proposes a request to its cluster. Source: etcdserver/api/v3rpc, key.go.

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// checkTxn takes as the size of a transaction the largest of its parts. What it leaves of limit is that of nested ones.
func checkTxn(r *pb.TxnRequest, limit int) error {
	size := max(len(r.Compare), len(r.Success), len(r.Failure))
	if size > limit {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if err := checkOp(op, limit-size); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, limit int) error {
	switch o := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(o.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(o.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(o.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(o.RequestTxn, limit)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// written is what a branch writes, with what is nested in it.
type written struct {
	puts    map[string]bool
	deletes []*pb.DeleteRangeRequest
}

func (w *written) deleted(key string) bool {
	for _, d := range w.deletes {
		from, end := string(d.Key), string(d.RangeEnd)
		if end == "" && key == from || end != "" && from <= key && key < end {
			return true
		}
	}
	return false
}

// put adds a key, which must not be written yet.
func (w *written) put(key string) error {
	if w.puts[key] || w.deleted(key) {
		return rpctypes.ErrGRPCDuplicateKey
	}
	w.puts[key] = true
	return nil
}

// checkOverlaps refuses a key that is put twice, or put and deleted. The branches of a nested transaction exclude each other.
// A deletion without an end (\0) overlaps with nothing, as in etcd.
func checkOverlaps(ops []*pb.RequestOp) (written, error) {
	w := written{puts: map[string]bool{}}
	for _, op := range ops {
		if d := op.GetRequestDeleteRange(); d != nil {
			w.deletes = append(w.deletes, d)
		}
	}
	for _, op := range ops {
		if nested := op.GetRequestTxn(); nested != nil {
			if err := w.nest(nested); err != nil {
				return w, err
			}
		}
	}
	for _, op := range ops {
		if p := op.GetRequestPut(); p != nil {
			if err := w.put(string(p.Key)); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}

func (w *written) nest(nested *pb.TxnRequest) error {
	then, err := checkOverlaps(nested.Success)
	if err != nil {
		return err
	}
	otherwise, err := checkOverlaps(nested.Failure)
	if err != nil {
		return err
	}
	for key := range then.puts {
		if err := w.put(key); err != nil {
			return err
		}
	}
	for key := range otherwise.puts {
		if then.puts[key] {
			continue
		}
		if err := w.put(key); err != nil {
			return err
		}
	}
	w.deletes = append(append(w.deletes, then.deletes...), otherwise.deletes...)
	return nil
}

// requestHeaderBytes is about what etcd adds to a request that it proposes: an id of 8 bytes with its framing.
const requestHeaderBytes = 12

func (m *Model) checkSize(r proto.Message) error {
	if proto.Size(r)+requestHeaderBytes > m.options.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

// puts says whether a transaction puts anything in either branch: the alarm NOSPACE refuses it then.
func puts(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestPut() != nil || op.GetRequestTxn() != nil && puts(op.GetRequestTxn()) {
				return true
			}
		}
	}
	return false
}
