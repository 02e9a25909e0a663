package etcdmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// client is what a model and a real etcd have in common.
type client interface {
	clientv3.KV
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
	TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error)
	KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error)
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error)
	Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan
}

const contractMaxTxnOps = 128

// open returns the model, and a real etcd with the same limits.
func open(t *testing.T) (model, real client) {
	store := etcdtest.Open(t, func(o *etcdstore.Options) { o.Dir, o.MaxTxnOps = memoryDir(t), contractMaxTxnOps })
	limit := etcdstore.Options{}.MaxRequestBytes()
	return newModel(t, etcdmodel.Options{MaxTxnOps: contractMaxTxnOps, MaxRequestBytes: limit, MinLease: time.Second}), store.Client()
}

// memoryDir is a directory in memory where there is such a thing: what a disk adds is time.
func memoryDir(t *testing.T) string {
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "etcdmodel")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newModel(t interface{ Cleanup(func()) }, options etcdmodel.Options) *etcdmodel.Client {
	model := etcdmodel.New(options)
	c := model.Client("contract", nil)
	t.Cleanup(func() {
		c.Close()
		model.Close()
	})
	return c
}

// session performs requests on one client and writes down what is answered. Revisions are counted from where it began, keys
// are below a prefix of its own, and leases have the number in which they were granted.
type session struct {
	ctx    context.Context
	client client
	prefix string
	base   int64
	leases []clientv3.LeaseID
	log    strings.Builder
}

func begin(ctx context.Context, c client, prefix string) (*session, error) {
	s := &session{ctx: ctx, client: c, prefix: prefix}
	now, err := c.Get(ctx, prefix)
	if err != nil {
		return nil, err
	}
	s.base = now.Header.Revision
	return s, nil
}

func (s *session) key(name string) string { return s.prefix + name }

// revision makes one that counts from the beginning absolute; 0 stays none.
func (s *session) revision(relative int64) int64 {
	if relative == 0 {
		return 0
	}
	return s.base + relative
}

// lease is that which was granted as number n, from 1 on; 0: none; one that was never granted has an id that no store gives.
func (s *session) lease(n int) clientv3.LeaseID {
	if n == 0 {
		return clientv3.NoLease
	}
	if n > len(s.leases) {
		return 1 << 60
	}
	return s.leases[n-1]
}

func (s *session) leaseNumber(id int64) int {
	for i, known := range s.leases {
		if int64(known) == id {
			return i + 1
		}
	}
	return -int(id)
}

func (s *session) grant(ttl int64) {
	granted, err := s.client.Grant(s.ctx, ttl)
	if err != nil {
		s.note("grant %d: %v", ttl, err)
		return
	}
	s.leases = append(s.leases, granted.ID)
	s.note("grant %d: lease %d ttl %d at %s", ttl, len(s.leases), granted.TTL, s.at(granted.ResponseHeader))
}

func (s *session) revoke(n int) {
	revoked, err := s.client.Revoke(s.ctx, s.lease(n))
	if err != nil {
		s.note("revoke %d: %v", n, err)
		return
	}
	s.note("revoke %d: at %s", n, s.at(revoked.Header))
}

func (s *session) keepAlive(n int) {
	renewed, err := s.client.KeepAliveOnce(s.ctx, s.lease(n))
	if err != nil {
		s.note("renew %d: %v", n, err)
		return
	}
	s.note("renew %d: ttl %d at %s", n, renewed.TTL, s.at(renewed.ResponseHeader))
}

func (s *session) timeToLive(n int) {
	left, err := s.client.TimeToLive(s.ctx, s.lease(n), clientv3.WithAttachedKeys())
	if err != nil {
		s.note("time of %d: %v", n, err)
		return
	}
	var keys []string
	for _, key := range left.Keys {
		keys = append(keys, strings.TrimPrefix(string(key), s.prefix))
	}
	slices.Sort(keys) // which etcd tells in the random order of a map
	s.note("time of %d: alive %v of %d keys %v at %s", n, left.TTL > 0, left.GrantedTTL, keys, s.at(left.ResponseHeader))
}

func (s *session) compact(relative int64) {
	compacted, err := s.client.Compact(s.ctx, s.revision(relative))
	if err != nil {
		s.note("compact %d: %v", relative, err)
		return
	}
	s.note("compact %d: at %s", relative, s.at(compacted.Header))
}

// do performs one operation.
func (s *session) do(what string, op clientv3.Op) {
	answer, err := s.client.Do(s.ctx, op)
	if err != nil {
		s.note("%s: %v", what, err)
		return
	}
	switch {
	case op.IsGet():
		s.note("%s: %s", what, s.showRange((*pb.RangeResponse)(answer.Get())))
	case op.IsPut():
		s.note("%s: %s", what, s.showPut((*pb.PutResponse)(answer.Put())))
	case op.IsDelete():
		s.note("%s: %s", what, s.showDelete((*pb.DeleteRangeResponse)(answer.Del())))
	default:
		s.note("%s: %s", what, s.showTxn((*pb.TxnResponse)(answer.Txn())))
	}
}

func (s *session) note(format string, args ...any) {
	fmt.Fprintf(&s.log, format+"\n", args...)
}

func (s *session) at(h *pb.ResponseHeader) string {
	if h.GetRevision() == 0 {
		return "none"
	}
	return s.number(h.GetRevision())
}

func (s *session) number(revision int64) string {
	if revision == 0 {
		return "0"
	}
	return fmt.Sprintf("%+d", revision-s.base)
}

func (s *session) showKey(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return "none"
	}
	return fmt.Sprintf("%s=%s c%s m%s v%d l%d", strings.TrimPrefix(string(kv.Key), s.prefix), kv.Value,
		s.number(kv.CreateRevision), s.number(kv.ModRevision), kv.Version, s.leaseNumber(kv.Lease))
}

func (s *session) showKeys(found []*mvccpb.KeyValue) string {
	var keys []string
	for _, kv := range found {
		keys = append(keys, s.showKey(kv))
	}
	return strings.Join(keys, ", ")
}

func (s *session) showRange(r *pb.RangeResponse) string {
	return fmt.Sprintf("[%s] count %d more %v at %s", s.showKeys(r.Kvs), r.Count, r.More, s.at(r.Header))
}

func (s *session) showPut(r *pb.PutResponse) string {
	return fmt.Sprintf("put, before %s, at %s", s.showKey(r.PrevKv), s.at(r.Header))
}

func (s *session) showDelete(r *pb.DeleteRangeResponse) string {
	return fmt.Sprintf("deleted %d, before [%s], at %s", r.Deleted, s.showKeys(r.PrevKvs), s.at(r.Header))
}

func (s *session) showTxn(r *pb.TxnResponse) string {
	text := fmt.Sprintf("%v at %s {", r.Succeeded, s.at(r.Header))
	for _, one := range r.Responses {
		switch o := one.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			text += s.showRange(o.ResponseRange)
		case *pb.ResponseOp_ResponsePut:
			text += s.showPut(o.ResponsePut)
		case *pb.ResponseOp_ResponseDeleteRange:
			text += s.showDelete(o.ResponseDeleteRange)
		case *pb.ResponseOp_ResponseTxn:
			text += s.showTxn(o.ResponseTxn)
		}
		text += "; "
	}
	return text + "}"
}

// watch notes everything that happened from a revision on, up to a put of the key "end" that it makes itself.
func (s *session) watch(relative int64, opts ...clientv3.OpOption) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	put, err := s.client.Put(ctx, s.key("end"), "")
	if err != nil {
		s.note("watch %d: %v", relative, err)
		return
	}
	if put.Header.Revision < s.revision(relative) {
		return // it would wait for what nobody does
	}
	last := s.key("end")
	opts = append([]clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(s.revision(relative))}, opts...)
	for answer := range s.client.Watch(ctx, s.prefix, opts...) {
		if err := answer.Err(); err != nil {
			s.note("watch %d: %v, compacted at %s", relative, err, s.number(answer.CompactRevision))
			continue
		}
		for _, e := range answer.Events {
			s.note("watch %d: %s %s before %s", relative, e.Type, s.showKey(e.Kv), s.showKey(e.PrevKv))
			if string(e.Kv.Key) == last {
				return
			}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.note("watch %d: did not come to its end", relative)
	}
}

// compare runs a script on both and returns where they differ.
func compareBoth(ctx context.Context, model, real client, prefix string, script func(*session)) (difference string) {
	var logs [2][]string
	for i, c := range []client{model, real} {
		s, err := begin(ctx, c, prefix)
		if err != nil {
			return err.Error()
		}
		script(s)
		logs[i] = strings.Split(s.log.String(), "\n")
	}
	for i, line := range logs[1] {
		if i >= len(logs[0]) {
			return "the model stopped before " + line
		}
		if logs[0][i] != line {
			return fmt.Sprintf("after\n%s\n model %s\n etcd  %s", strings.Join(logs[1][:i], "\n"), logs[0][i], line)
		}
	}
	return ""
}
