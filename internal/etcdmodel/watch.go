package etcdmodel

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// watch is one watch of a client.
type watch struct {
	request *pb.WatchCreateRequest
	next    int64 // the first revision that has not been told; guarded by Model.mu
	// wake is sent to, without waiting, when there may be something to tell.
	wake chan struct{}
}

// delivery is what a watch has to tell from a revision on.
type delivery struct {
	watch *watch
	from  int64
}

func (w *watch) covers(key string) bool {
	from, end := string(w.request.Key), w.request.RangeEnd
	switch {
	case len(end) == 0:
		return key == from
	case endless(end):
		return key >= from
	}
	return from <= key && key < string(end)
}

func (w *watch) filtered(e *event) bool {
	if e.deleted {
		return slices.Contains(w.request.Filters, pb.WatchCreateRequest_NODELETE)
	}
	return slices.Contains(w.request.Filters, pb.WatchCreateRequest_NOPUT)
}

// createWatch begins a watch at the revision asked for, or after the newest.
func (m *Model) createWatch(r *pb.WatchCreateRequest) *watch {
	w := &watch{request: r, next: r.StartRevision, wake: make(chan struct{}, 1)}
	if w.next == 0 {
		w.next = m.store.revision + 1
	}
	m.watches = append(m.watches, w)
	if m.due(w) {
		w.wake <- struct{}{}
	}
	return w
}

func (m *Model) forget(w *watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watches = slices.DeleteFunc(m.watches, func(one *watch) bool { return one == w })
}

// due says whether a watch has anything to tell: an event, or that events were compacted away.
func (m *Model) due(w *watch) bool {
	if w.next < m.store.compacted {
		return true
	}
	return slices.ContainsFunc(m.store.from(w.next), func(e event) bool { return w.covers(e.history.key) && !w.filtered(&e) })
}

// from is everything that happened at revision and later.
func (s *store) from(revision int64) []event {
	i, _ := slices.BinarySearchFunc(s.log, revision, func(e event, revision int64) int { return int(e.revision - revision) })
	return s.log[i:]
}

func (m *Model) wakeWatches() {
	for _, w := range m.watches {
		if !m.due(w) {
			continue
		}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (m *Model) delivery(w *watch) *delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &delivery{w, w.next}
}

// deliver takes everything that a watch has to tell.
func (m *Model) deliver(w *watch) *clientv3.WatchResponse {
	response := &clientv3.WatchResponse{Header: m.header()}
	if w.next < m.store.compacted {
		response.CompactRevision, response.Canceled = m.store.compacted, true
		return response
	}
	for _, e := range m.store.from(w.next) {
		if w.covers(e.history.key) && !w.filtered(&e) {
			response.Events = append(response.Events, m.store.tell(w, &e))
		}
	}
	w.next = max(w.next, m.store.revision+1)
	return response
}

// tell makes an event for a watch. The value before is read only now, and may be compacted away.
func (s *store) tell(w *watch, e *event) *clientv3.Event {
	told := &clientv3.Event{Type: mvccpb.Event_PUT, Kv: cloneKeyValue(e.kv)}
	if e.deleted {
		told.Type = mvccpb.Event_DELETE
	}
	if w.request.PrevKv && e.previous != nil && e.revision > s.compacted {
		told.PrevKv = cloneKeyValue(e.previous)
	}
	return told
}

func cloneKeyValue(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: slices.Clone(kv.Key), Value: slices.Clone(kv.Value),
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease,
	}
}

// Watch begins a watch; see clientv3.Watcher. An error of the gate, at the beginning or at a delivery, ends the watch with a
// last answer that has it as its reason.
func (c *Client) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	answers := make(chan clientv3.WatchResponse, 1)
	op := clientv3.OpWatch(key, opts...)
	request := &pb.WatchCreateRequest{Key: op.KeyBytes(), RangeEnd: op.RangeBytes(), StartRevision: op.Rev(), PrevKv: op.IsPrevKV()}
	if len(request.Key) == 0 {
		request.Key = []byte{0}
	}
	if op.IsFilterPut() {
		request.Filters = append(request.Filters, pb.WatchCreateRequest_NOPUT)
	}
	if op.IsFilterDelete() {
		request.Filters = append(request.Filters, pb.WatchCreateRequest_NODELETE)
	}
	w, err := call[watch](ctx, c.sender, request)
	if err != nil {
		end(ctx, answers, err)
		return answers
	}
	if op.IsCreatedNotify() {
		answers <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: w.next - 1}, Created: true}
	}
	c.tasks.Go(func() {
		defer c.model.forget(w)
		ctx, cancel := c.until(ctx)
		defer cancel()
		c.follow(ctx, w, answers)
	})
	return answers
}

// follow delivers until the watch ends, and closes answers then.
func (c *Client) follow(ctx context.Context, w *watch, answers chan clientv3.WatchResponse) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			close(answers)
			return
		}
		response, err := call[clientv3.WatchResponse](ctx, c.sender, c.model.delivery(w))
		if err != nil {
			end(ctx, answers, err)
			return
		}
		if len(response.Events) == 0 && !response.Canceled {
			continue
		}
		select {
		case answers <- *response:
		case <-ctx.Done():
			close(answers)
			return
		}
		if response.Canceled {
			close(answers)
			return
		}
	}
}

// end closes a watch, with a last answer if the caller did not end it.
func end(ctx context.Context, answers chan clientv3.WatchResponse, err error) {
	defer close(answers)
	if ctx.Err() != nil {
		return
	}
	last := clientv3.WatchResponse{Canceled: true, CancelReason: status.Convert(err).Message()}
	if status.Code(err) == codes.Unknown {
		last.CancelReason = err.Error()
	}
	select {
	case answers <- last:
	case <-ctx.Done():
	}
}

// RequestProgress is not modelled.
func (c *Client) RequestProgress(context.Context) error { return errNotModelled }
