package etcdmodel

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Gate decides the fate of a request. It is called in the goroutine that sends the request, holds it as long as it likes, and
// should return when ctx ends, as a client does. The request is applied when the gate, or anybody who got it from the gate,
// calls Apply: before the gate returns, after it, or never. If the gate returns nil the request is applied, if it was not yet,
// and its answer delivered; if it returns an error the caller gets that, whatever has been or will be applied. Errors are those
// of package rpctypes, grpc's, or the context's.
//
// What is left of a request whose caller has gone is the gate's: it may apply it as late as it likes.
type Gate func(ctx context.Context, r *Request) error

// Kind is a kind of request.
type Kind string

const (
	Get        Kind = "get"
	Put        Kind = "put"
	Delete     Kind = "delete"
	Txn        Kind = "txn"
	Compaction Kind = "compact"
	Grant      Kind = "grant"
	Revoke     Kind = "revoke"
	KeepAlive  Kind = "keepalive"
	TimeToLive Kind = "timetolive"
	Leases     Kind = "leases"
	Watch      Kind = "watch"  // a watch begins
	Events     Kind = "events" // what a watch has to tell is delivered: all of it, when the request is applied
)

// Request is one request of a client.
type Request struct {
	Client string
	Kind   Kind

	model   *Model
	message any

	mu      sync.Mutex
	applied bool
	answer  any
	err     error
}

func newRequest(client string, model *Model, message any) *Request {
	r := &Request{Client: client, model: model, message: message}
	switch message.(type) {
	case *pb.RangeRequest:
		r.Kind = Get
	case *pb.PutRequest:
		r.Kind = Put
	case *pb.DeleteRangeRequest:
		r.Kind = Delete
	case *pb.TxnRequest:
		r.Kind = Txn
	case *pb.CompactionRequest:
		r.Kind = Compaction
	case *pb.LeaseGrantRequest:
		r.Kind = Grant
	case *pb.LeaseRevokeRequest:
		r.Kind = Revoke
	case *pb.LeaseKeepAliveRequest:
		r.Kind = KeepAlive
	case *pb.LeaseTimeToLiveRequest:
		r.Kind = TimeToLive
	case *pb.LeaseLeasesRequest:
		r.Kind = Leases
	case *pb.WatchCreateRequest:
		r.Kind = Watch
	case *delivery:
		r.Kind = Events
	}
	return r
}

// Apply applies the request, once however often it is called, and returns the error of the store, as etcd answers it.
func (r *Request) Apply() error { return r.applyAt(0) }

// ApplyStale has a member answer that has not heard of anything after revision. Only for a request that is Stale.
func (r *Request) ApplyStale(revision int64) error {
	if !r.Stale() {
		panic("a member that lags behind does not answer " + r.String())
	}
	return r.applyAt(revision)
}

func (r *Request) applyAt(revision int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.applied {
		r.applied = true
		r.answer, r.err = r.model.apply(r.message, revision)
	}
	return r.err
}

// Applied says whether the request was applied.
func (r *Request) Applied() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied
}

// Succeeded says whether the request was applied without an error and, if it is a transaction, took its first branch.
func (r *Request) Succeeded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.applied || r.err != nil {
		return false
	}
	answer, isTxn := r.answer.(*pb.TxnResponse)
	return !isTxn || answer.Succeeded
}

// Stale says whether etcd lets a member answer that may lag behind: serializable reads, and transactions of nothing else,
// those without any operation included.
func (r *Request) Stale() bool {
	switch m := r.message.(type) {
	case *pb.RangeRequest:
		return m.Serializable
	case *pb.TxnRequest:
		for _, op := range slices.Concat(m.Success, m.Failure) {
			if get := op.GetRequestRange(); get == nil || !get.Serializable {
				return false
			}
		}
		return true
	}
	return false
}

// Writes says whether the request may change keys or leases. The renewal of a lease counts.
func (r *Request) Writes() bool {
	switch r.Kind {
	case Get, TimeToLive, Leases, Watch, Events:
		return false
	case Txn:
		return !readOnly(r.message.(*pb.TxnRequest))
	}
	return true
}

// Changes says whether the request would change a key or a lease if it were applied now: a transaction whose condition does not
// hold, or a deletion of nothing, would not.
func (r *Request) Changes() bool {
	m := r.model
	m.mu.Lock()
	defer m.mu.Unlock()
	switch message := r.message.(type) {
	case *pb.DeleteRangeRequest:
		return m.store.any(message.Key, message.RangeEnd)
	case *pb.TxnRequest:
		return m.store.changes(message, m.store.choose(message, m.store.revision))
	}
	return r.Writes()
}

// Ops are the operations of the request: of a transaction its compares and both branches. They are for looking at only.
// None for leases and watches.
func (r *Request) Ops() (compares []*pb.Compare, then, otherwise []*pb.RequestOp) {
	switch m := r.message.(type) {
	case *pb.RangeRequest:
		return nil, []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: m}}}, nil
	case *pb.PutRequest:
		return nil, []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: m}}}, nil
	case *pb.DeleteRangeRequest:
		return nil, []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: m}}}, nil
	case *pb.TxnRequest:
		return m.Compare, m.Success, m.Failure
	}
	return nil, nil, nil
}

// Keys are the keys and the beginnings of ranges that the request names, each once, in the order of the request.
func (r *Request) Keys() []string {
	var keys []string
	add := func(key []byte) {
		if !slices.Contains(keys, string(key)) {
			keys = append(keys, string(key))
		}
	}
	switch m := r.message.(type) {
	case *pb.WatchCreateRequest:
		add(m.Key)
	case *delivery:
		add(m.watch.request.Key)
	}
	compares, then, otherwise := r.Ops()
	visit(compares, then, otherwise, func(key, _ []byte) { add(key) })
	return keys
}

func visit(compares []*pb.Compare, then, otherwise []*pb.RequestOp, see func(key, end []byte)) {
	for _, c := range compares {
		see(c.Key, c.RangeEnd)
	}
	for _, op := range slices.Concat(then, otherwise) {
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			see(o.RequestRange.Key, o.RequestRange.RangeEnd)
		case *pb.RequestOp_RequestPut:
			see(o.RequestPut.Key, nil)
		case *pb.RequestOp_RequestDeleteRange:
			see(o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd)
		case *pb.RequestOp_RequestTxn:
			visit(o.RequestTxn.Compare, o.RequestTxn.Success, o.RequestTxn.Failure, see)
		}
	}
}

// String describes the request in one line, the same for the same request: kind, keys, what is compared, sizes of values and
// not values, which may be random; the compares and the operations of a transaction are sorted.
func (r *Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Client, r.Kind)
	switch m := r.message.(type) {
	case *pb.TxnRequest:
		describeTxn(&b, m)
	case *pb.LeaseGrantRequest:
		fmt.Fprintf(&b, " ttl=%d", m.TTL)
	case *pb.LeaseRevokeRequest:
		fmt.Fprintf(&b, " %d", m.ID)
	case *pb.LeaseKeepAliveRequest:
		fmt.Fprintf(&b, " %d", m.ID)
	case *pb.LeaseTimeToLiveRequest:
		fmt.Fprintf(&b, " %d", m.ID)
	case *pb.CompactionRequest:
		fmt.Fprintf(&b, " %d", m.Revision)
	case *pb.WatchCreateRequest:
		fmt.Fprintf(&b, " %s from %d", span(m.Key, m.RangeEnd), m.StartRevision)
	case *delivery:
		fmt.Fprintf(&b, " %s from %d", span(m.watch.request.Key, m.watch.request.RangeEnd), m.from)
	default:
		_, then, _ := r.Ops()
		for _, op := range then {
			b.WriteByte(' ')
			describeOp(&b, op, false)
		}
	}
	return b.String()
}

func span(key, end []byte) string {
	switch {
	case len(end) == 0:
		return string(key)
	case string(end) == clientv3.GetPrefixRangeEnd(string(key)):
		return string(key) + "*"
	case endless(end):
		return "[" + string(key) + ", )"
	}
	return "[" + string(key) + ", " + string(end) + ")"
}

// describeTxn sorts what it describes: the product may have put it together in the order of a map.
func describeTxn(b *strings.Builder, r *pb.TxnRequest) {
	var compares []string
	for _, c := range r.Compare {
		compares = append(compares, fmt.Sprintf(" if %s(%s)%s%s", strings.ToLower(c.Target.String()), span(c.Key, c.RangeEnd), signs[c.Result], target(c)))
	}
	slices.Sort(compares)
	b.WriteString(strings.Join(compares, ""))
	for i, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		if len(ops) > 0 {
			b.WriteString([]string{" then", " else"}[i])
		}
		var described []string
		for _, op := range ops {
			var one strings.Builder
			describeOp(&one, op, true)
			described = append(described, " "+one.String())
		}
		slices.Sort(described)
		b.WriteString(strings.Join(described, ""))
	}
}

var signs = map[pb.Compare_CompareResult]string{
	pb.Compare_EQUAL: "=", pb.Compare_NOT_EQUAL: "!=", pb.Compare_GREATER: ">", pb.Compare_LESS: "<",
}

func target(c *pb.Compare) string {
	switch t := c.TargetUnion.(type) {
	case *pb.Compare_Version:
		return strconv.FormatInt(t.Version, 10)
	case *pb.Compare_CreateRevision:
		return strconv.FormatInt(t.CreateRevision, 10)
	case *pb.Compare_ModRevision:
		return strconv.FormatInt(t.ModRevision, 10)
	case *pb.Compare_Lease:
		return strconv.FormatInt(t.Lease, 10)
	case *pb.Compare_Value:
		return strconv.Itoa(len(t.Value)) + "B"
	}
	return "?"
}

func describeOp(b *strings.Builder, op *pb.RequestOp, named bool) {
	name := func(kind string) string {
		if named {
			return kind + " "
		}
		return ""
	}
	switch o := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		fmt.Fprintf(b, "%s%s", name("get"), span(o.RequestRange.Key, o.RequestRange.RangeEnd))
		if o.RequestRange.Revision != 0 {
			fmt.Fprintf(b, "@%d", o.RequestRange.Revision)
		}
	case *pb.RequestOp_RequestPut:
		fmt.Fprintf(b, "%s%s=%dB", name("put"), o.RequestPut.Key, len(o.RequestPut.Value))
	case *pb.RequestOp_RequestDeleteRange:
		fmt.Fprintf(b, "%s%s", name("delete"), span(o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd))
	case *pb.RequestOp_RequestTxn:
		var nested strings.Builder
		describeTxn(&nested, o.RequestTxn)
		fmt.Fprintf(b, "(%s)", strings.TrimPrefix(nested.String(), " "))
	}
}
