package etcdmodel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// cases are what random requests do not reach, or take too long for.
var cases = []struct {
	name string
	do   func(*session)
}{
	{"operations at the limit", func(s *session) { s.do("txn", clientv3.OpTxn(nil, s.puts(contractMaxTxnOps), nil)) }},
	{"operations over the limit", func(s *session) {
		s.do("then", clientv3.OpTxn(nil, s.puts(contractMaxTxnOps+1), nil))
		s.do("else", clientv3.OpTxn(nil, nil, s.puts(contractMaxTxnOps+1)))
		s.do("compares", clientv3.OpTxn(s.compares(contractMaxTxnOps+1), nil, nil))
	}},
	{"nested operations have what is left", func(s *session) {
		for _, n := range []int{contractMaxTxnOps - 1, contractMaxTxnOps} {
			s.do("txn", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, s.puts(n), nil)}, nil))
		}
	}},
	{"request over the limit", func(s *session) {
		large := strings.Repeat("x", 70<<20)
		s.do("put", clientv3.OpPut(s.key("a"), large))
		s.do("txn", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(s.key("a"), large)}, nil))
		s.do("get", clientv3.OpGet(s.key("a")))
	}},
	{"empty keys", func(s *session) {
		s.do("get", clientv3.OpGet(""))
		s.do("put", clientv3.OpPut("", "x"))
		s.do("delete", clientv3.OpDelete(""))
		s.do("txn", clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version(""), "=", 0)}, nil, nil))
		s.do("txn", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet("")}, nil))
	}},
	{"what contradicts itself", func(s *session) {
		s.do("ignore value", clientv3.OpPut(s.key("a"), "x", clientv3.WithIgnoreValue()))
		s.do("ignore lease", clientv3.OpPut(s.key("a"), "x", clientv3.WithIgnoreLease(), clientv3.WithLease(7)))
	}},
	{"a key twice in a transaction", func(s *session) {
		a, b := clientv3.OpPut(s.key("a"), "x"), clientv3.OpPut(s.key("b"), "x")
		all := clientv3.OpDelete(s.prefix, clientv3.WithPrefix())
		s.do("twice", clientv3.OpTxn(nil, []clientv3.Op{a, a}, nil))
		s.do("twice in the branch not taken", clientv3.OpTxn(nil, nil, []clientv3.Op{a, a}))
		s.do("in a deleted range", clientv3.OpTxn(nil, []clientv3.Op{b, all}, nil))
		s.do("at the end of a deleted range", clientv3.OpTxn(nil, []clientv3.Op{b, clientv3.OpDelete(s.key("a"), clientv3.WithRange(s.key("b")))}, nil))
		s.do("deleted twice", clientv3.OpTxn(nil, []clientv3.Op{all, all}, nil))
		s.do("nested", clientv3.OpTxn(nil, []clientv3.Op{a, clientv3.OpTxn(nil, []clientv3.Op{a}, nil)}, nil))
		s.do("in both branches of a nested one", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{a}, []clientv3.Op{a})}, nil))
		s.do("nested deletion", clientv3.OpTxn(nil, []clientv3.Op{a, clientv3.OpTxn(nil, []clientv3.Op{all}, nil)}, nil))
		s.do("without an end", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(s.key("zz"), ""), clientv3.OpDelete(s.key("z"), clientv3.WithFromKey())}, nil))
	}},
	{"one false operation refuses all", func(s *session) {
		s.do("put", clientv3.OpPut(s.key("a"), "x"))
		s.do("lease", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(s.key("a"), "y"), clientv3.OpPut(s.key("b"), "y", clientv3.WithLease(1<<60))}, nil))
		s.do("revision", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(s.key("a"), "y"), clientv3.OpGet(s.key("b"), clientv3.WithRev(s.revision(50)))}, nil))
		s.do("own revision", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(s.key("a"), "y"), clientv3.OpGet(s.key("a"), clientv3.WithRev(s.revision(2)))}, nil))
		s.do("get", clientv3.OpGet(s.prefix, clientv3.WithPrefix()))
	}},
	{"a transaction reads what it wrote", func(s *session) {
		s.do("txn", clientv3.OpTxn(nil, []clientv3.Op{
			clientv3.OpGet(s.key("a")), clientv3.OpPut(s.key("a"), "x"), clientv3.OpGet(s.key("a")), clientv3.OpDelete(s.key("b")), clientv3.OpGet(s.key("b")),
		}, nil))
	}},
	{"nested compares look at what was before", func(s *session) {
		absent := []clientv3.Cmp{clientv3.Compare(clientv3.Version(s.key("a")), "=", 0)}
		for range 2 {
			s.do("txn", clientv3.OpTxn(nil, []clientv3.Op{
				clientv3.OpPut(s.key("a"), "x"),
				clientv3.OpTxn(absent, []clientv3.Op{clientv3.OpPut(s.key("b"), "absent")}, []clientv3.Op{clientv3.OpPut(s.key("b"), "there")}),
				clientv3.OpGet(s.key("b")),
			}, nil))
		}
	}},
	{"reading at a compacted revision", func(s *session) {
		for range 4 {
			s.do("put", clientv3.OpPut(s.key("a"), "x"))
		}
		s.do("delete", clientv3.OpDelete(s.key("a")))
		for _, revision := range []int64{3, 3, 2, 9, 5} {
			s.compact(revision)
			for _, at := range []int64{2, 3, 4, 5} {
				s.do(fmt.Sprint("get at ", at), clientv3.OpGet(s.key("a"), clientv3.WithRev(s.revision(at))))
				s.do(fmt.Sprint("get in txn at ", at), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet(s.key("a"), clientv3.WithRev(s.revision(at)))}, nil))
			}
		}
		for _, from := range []int64{3, 4, 5, 6} {
			s.watch(from)
		}
	}},
	{"previous values that were compacted", func(s *session) {
		s.do("put", clientv3.OpPut(s.key("a"), "x"))
		s.do("put", clientv3.OpPut(s.key("a"), "y"))
		s.do("put", clientv3.OpPut(s.key("b"), "y"))
		s.do("delete", clientv3.OpDelete(s.key("a")))
		s.compact(2)
		s.watch(2, clientv3.WithPrevKV())
	}},
	{"watches of other ranges", func(s *session) {
		for _, name := range []string{"a", "b", "ba", "c"} {
			s.do("put", clientv3.OpPut(s.key(name), "x"))
		}
		s.watch(1, clientv3.WithRange(s.key("zz")))
		s.watch(2, clientv3.WithFromKey())
	}},
	{"a target without an order sorts no more than the limit and one", func(s *session) {
		for _, name := range []string{"d", "ba", "b", "a"} {
			s.do("put", clientv3.OpPut(s.key(name), "x"))
		}
		for _, limit := range []int64{0, 1, 2, 3} {
			s.do("get", clientv3.OpGet(s.key("a"), clientv3.WithRange(s.key("z")), clientv3.WithLimit(limit),
				clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortNone)))
		}
	}},
	{"a lease takes its keys along", func(s *session) {
		s.grant(1)
		s.grant(1000)
		for _, name := range []string{"d", "b", "c"} {
			s.do("put", clientv3.OpPut(s.key(name), "x", clientv3.WithLease(s.lease(1))))
		}
		s.do("other lease", clientv3.OpPut(s.key("c"), "x", clientv3.WithLease(s.lease(2))))
		s.untilGone(s.key("b"))
		s.timeToLive(1)
		s.keepAlive(1)
		s.do("put", clientv3.OpPut(s.key("a"), "x", clientv3.WithLease(s.lease(1))))
		s.timeToLive(2)
		s.watch(1)
	}},
	{"a renewed lease lives", func(s *session) {
		s.grant(2)
		s.do("put", clientv3.OpPut(s.key("a"), "x", clientv3.WithLease(s.lease(1))))
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		answers, err := s.client.KeepAlive(ctx, s.lease(1))
		s.note("keep alive %v", err)
		for range 4 { // longer than the lease
			answer := <-answers
			s.note("ttl %d", answer.TTL)
		}
		s.do("get", clientv3.OpGet(s.key("a")))
		s.revoke(1)
		for range answers { // one may be on its way
		}
		s.do("get", clientv3.OpGet(s.key("a")))
	}},
	{"keep alive of a lease that is gone", func(s *session) {
		answers, err := s.client.KeepAlive(s.ctx, 1<<60)
		s.note("keep alive %v", err)
		for answer := range answers {
			s.note("ttl %d", answer.TTL)
		}
	}},
	{"a context that has ended", func(s *session) {
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		_, err := s.client.Put(ended, s.key("a"), "x")
		s.note("put %v", err)
		_, err = s.client.Txn(ended).Then(clientv3.OpPut(s.key("a"), "x")).Commit()
		s.note("txn %v", err)
		_, err = s.client.Grant(ended, 10)
		s.note("grant %v", err)
		for range s.client.Watch(ended, s.key("a")) {
			s.note("watched")
		}
		late, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
		defer cancel()
		_, err = s.client.Get(late, s.key("a"))
		// A member that is slow to look at the deadline says in words of its own where it stopped.
		s.note("get failed %v", err != nil)
	}},
}

func (s *session) puts(n int) []clientv3.Op {
	var ops []clientv3.Op
	for i := range n {
		ops = append(ops, clientv3.OpPut(s.key(fmt.Sprint("many/", i)), ""))
	}
	return ops
}

func (s *session) compares(n int) []clientv3.Cmp {
	var cmps []clientv3.Cmp
	for i := range n {
		cmps = append(cmps, clientv3.Compare(clientv3.Version(s.key(fmt.Sprint("many/", i))), "=", 0))
	}
	return cmps
}

// untilGone waits until a key is deleted.
func (s *session) untilGone(key string) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	for answer := range s.client.Watch(ctx, key, clientv3.WithFilterPut()) {
		s.note("%d deletions, %v", len(answer.Events), answer.Err())
		return
	}
}

func TestCases(t *testing.T) {
	model, real := open(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if difference := compareBoth(t.Context(), model, real, fmt.Sprintf("case/%d/", i), c.do); difference != "" {
				t.Error(difference)
			}
		})
	}
}
