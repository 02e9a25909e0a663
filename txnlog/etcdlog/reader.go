package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// page is a part of the log in key order.
type page struct {
	kvs  []*mvccpb.KeyValue
	more bool // there are entries behind
}

// reader reads the log page by page at one revision, which it keeps readable until release.
type reader struct {
	log    *Log
	rev    int64
	unpin  func()
	limit  int64 // entries of the next page
	target int   // bytes of a page
}

func (r *reader) release() {
	if r.unpin != nil {
		r.unpin()
		r.unpin = nil
	}
}

// first finds the revision: it reads the first page and the id bound in one transaction under the fence of the term.
func (r *reader) first(ctx context.Context) (p page, next uint64, err error) {
	key := r.log.space.Next(r.log.tc)
	p, bound, err := r.fenced(ctx, r.log.prefix, r.log.end(), clientv3.OpGet(key))
	if err != nil || len(bound) == 0 {
		return p, 0, err
	}
	next, err = strconv.ParseUint(string(bound[0].Value), 10, 64)
	if err != nil {
		return page{}, 0, &txn.CorruptError{Key: key, Reason: fmt.Sprintf("want a decimal number, have %.32q", bound[0].Value)}
	}
	return p, next, nil
}

// fenced reads a page of the keys from from to end, and what the additional operation asks for, at the newest revision, which
// becomes that of r. Only the term itself writes to its log, so what is read at different revisions at which the term held fits
// together.
func (r *reader) fenced(ctx context.Context, from, end string, also ...clientv3.Op) (p page, found []*mvccpb.KeyValue, err error) {
	l := r.log
	var response *clientv3.TxnResponse
	err = r.inTime(ctx, func(ctx context.Context) (err error) {
		response, err = l.kv.Txn(ctx).
			If(l.fence()).
			Then(append([]clientv3.Op{
				clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(r.limit)),
			}, also...)...).
			Else(l.readLeader()).
			Commit()
		return err
	})
	if err != nil {
		return page{}, nil, fmt.Errorf("read log: %w", err)
	}
	if !response.Succeeded {
		return page{}, nil, fmt.Errorf("read log: %w", l.fenced(response))
	}
	r.release()
	r.rev = response.Header.Revision
	r.unpin = l.options.Pin(r.rev)
	if len(also) > 0 {
		found = response.Responses[1].GetResponseRange().GetKvs()
	}
	entries := response.Responses[0].GetResponseRange()
	return r.page(entries.GetKvs(), entries.GetMore()), found, nil
}

// after reads the page behind p.
func (r *reader) after(ctx context.Context, p page) (page, error) {
	from := string(p.kvs[len(p.kvs)-1].Key) + "\x00"
	var response *clientv3.GetResponse
	err := r.inTime(ctx, func(ctx context.Context) (err error) {
		response, err = r.log.kv.Get(ctx, from, clientv3.WithRange(r.log.end()), clientv3.WithLimit(r.limit), clientv3.WithRev(r.rev))
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		following, _, err := r.fenced(ctx, from, r.log.end())
		return following, err
	}
	if err != nil {
		return page{}, fmt.Errorf("read log: %w", err)
	}
	return r.page(response.Kvs, response.More), nil
}

// inTime bounds one read of a page. What takes too long may be many large entries behind small ones, by which the page was fitted: it is
// read again with no more than are sure to fit.
func (r *reader) inTime(ctx context.Context, read func(context.Context) error) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		err := read(bounded)
		late := err != nil && bounded.Err() != nil && ctx.Err() == nil
		cancel()
		sure := max(1, int64(r.target/r.log.options.MaxBytes))
		if !late || r.limit <= sure {
			return err
		}
		r.limit = sure
	}
}

// page takes what was read and fits the next page to its size.
func (r *reader) page(kvs []*mvccpb.KeyValue, more bool) page {
	size := 0
	for _, kv := range kvs {
		size += len(kv.Key) + len(kv.Value)
	}
	if size > 0 {
		fitting := int64(r.target) * int64(len(kvs)) / int64(size)
		r.limit = max(1, min(fitting, 8*r.limit, largestPage))
	}
	return page{kvs: kvs, more: more && len(kvs) > 0}
}

// prefetched is a page on its way.
type prefetched struct {
	cancel context.CancelFunc
	done   chan struct{}
	page   page  // valid once done is closed
	err    error // likewise
}

// prefetch reads the page behind p in the background; nil if there is none. Nobody else uses r until it is waited for.
func (r *reader) prefetch(ctx context.Context, p page) *prefetched {
	if !p.more {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &prefetched{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.page, f.err = r.after(ctx, p)
	}()
	return f
}

// wait returns the page.
func (f *prefetched) wait() (page, error) {
	<-f.done
	f.cancel()
	return f.page, f.err
}

// abandon waits until nothing is under way any more. It may be called on nil.
func (f *prefetched) abandon() {
	if f == nil {
		return
	}
	f.cancel()
	<-f.done
}
