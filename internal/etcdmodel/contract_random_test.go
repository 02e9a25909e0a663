package etcdmodel_test

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"
)

// step is one random request, which can be performed on both.
type step func(*session)

var names = []string{"a", "b", "ba", "c", "d"}

// Random requests have the same answers on the model and on a real etcd.
func TestRandomRequests(t *testing.T) {
	model, real := open(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 40).Draw(t, "steps")
		watchFrom := rapid.Int64Range(1, 20).Draw(t, "watch from")
		var filters []clientv3.OpOption
		if rapid.Bool().Draw(t, "previous") {
			filters = append(filters, clientv3.WithPrevKV())
		}
		if rapid.IntRange(0, 3).Draw(t, "filter") == 0 {
			filters = append(filters, clientv3.WithFilterDelete())
		}
		difference := compareBoth(t.Context(), model, real, fmt.Sprintf("random/%d/", run), func(s *session) {
			for _, one := range steps {
				one(s)
			}
			s.watch(watchFrom, filters...)
		})
		if difference != "" {
			t.Fatal(difference)
		}
	})
}

func drawStep(t *rapid.T) step {
	switch rapid.IntRange(0, 19).Draw(t, "step") {
	case 0:
		// None that ends before the test does: the end of a lease moves the revision under another run.
		ttl := rapid.SampledFrom([]int64{1000, 2000, 9_000_000_001}).Draw(t, "ttl")
		return func(s *session) { s.grant(ttl) }
	case 1:
		n := drawLease(t)
		return func(s *session) { s.revoke(n) }
	case 2:
		n := drawLease(t)
		return func(s *session) { s.keepAlive(n); s.timeToLive(n) }
	case 3:
		revision := rapid.Int64Range(1, 30).Draw(t, "compact")
		return func(s *session) { s.compact(revision) }
	case 4, 5, 6, 7, 8, 9:
		op := drawTxn(t, 2)
		return func(s *session) { s.do("txn", op(s)) }
	default:
		op := drawOp(t, 0)
		return func(s *session) { s.do("op", op(s)) }
	}
}

func drawLease(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3}).Draw(t, "lease")
}

func drawName(t *rapid.T) string { return rapid.SampledFrom(names).Draw(t, "name") }

// makeOp makes an operation for the keys, revisions and leases of one session.
type makeOp func(*session) clientv3.Op

// drawOp draws an operation, in which transactions nest up to depth.
func drawOp(t *rapid.T, depth int) makeOp {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind < 4:
		return drawPut(t)
	case kind < 6:
		return drawDelete(t)
	case kind < 7 && depth > 0:
		return drawTxn(t, depth-1)
	}
	return drawGet(t)
}

func drawPut(t *rapid.T) makeOp {
	name, lease := drawName(t), drawLease(t)
	value := rapid.SampledFrom([]string{"", "x", "y", "zz"}).Draw(t, "value")
	how := rapid.IntRange(0, 11).Draw(t, "how")
	return func(s *session) clientv3.Op {
		var opts []clientv3.OpOption
		if lease != 0 && how != 1 {
			opts = append(opts, clientv3.WithLease(s.lease(lease)))
		}
		switch how {
		case 0:
			opts = append(opts, clientv3.WithIgnoreValue())
		case 1:
			opts = append(opts, clientv3.WithIgnoreLease())
		case 2, 3, 4:
			opts = append(opts, clientv3.WithPrevKV())
		}
		return clientv3.OpPut(s.key(name), value, opts...)
	}
}

func drawDelete(t *rapid.T) makeOp {
	span, previous := drawSpan(t), rapid.Bool().Draw(t, "previous")
	return func(s *session) clientv3.Op {
		key, opts := span(s)
		if previous {
			opts = append(opts, clientv3.WithPrevKV())
		}
		return clientv3.OpDelete(key, opts...)
	}
}

// drawSpan draws a key, a range or a prefix.
func drawSpan(t *rapid.T) func(*session) (key string, opts []clientv3.OpOption) {
	name, end := drawName(t), drawName(t)
	how := rapid.IntRange(0, 5).Draw(t, "span")
	return func(s *session) (string, []clientv3.OpOption) {
		switch how {
		case 0:
			return s.key(name), []clientv3.OpOption{clientv3.WithRange(s.key(end))}
		case 1:
			return s.key(name), []clientv3.OpOption{clientv3.WithPrefix()}
		case 2:
			return s.prefix, []clientv3.OpOption{clientv3.WithPrefix()}
		}
		return s.key(name), nil
	}
}

func drawGet(t *rapid.T) makeOp {
	span := drawSpan(t)
	limit := rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(t, "limit")
	revision := rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 5, 8, 13, 30}).Draw(t, "revision")
	target := rapid.SampledFrom([]clientv3.SortTarget{
		clientv3.SortByKey, clientv3.SortByVersion, clientv3.SortByCreateRevision, clientv3.SortByModRevision, clientv3.SortByValue,
	}).Draw(t, "target")
	direction := rapid.SampledFrom([]clientv3.SortOrder{clientv3.SortNone, clientv3.SortAscend, clientv3.SortDescend}).Draw(t, "order")
	how := rapid.IntRange(0, 15).Draw(t, "how")
	bound := rapid.Int64Range(1, 12).Draw(t, "bound")
	return func(s *session) clientv3.Op {
		key, opts := span(s)
		opts = append(opts, clientv3.WithLimit(limit), clientv3.WithRev(s.revision(revision)))
		if how%2 == 0 {
			opts = append(opts, clientv3.WithSort(target, direction))
		}
		switch how {
		case 1, 2:
			opts = append(opts, clientv3.WithKeysOnly())
		case 3, 4:
			opts = append(opts, clientv3.WithCountOnly())
		case 5:
			opts = append(opts, clientv3.WithSerializable())
		case 6:
			opts = append(opts, clientv3.WithMinModRev(s.revision(bound)))
		case 7:
			opts = append(opts, clientv3.WithMaxModRev(s.revision(bound)))
		case 8:
			opts = append(opts, clientv3.WithMinCreateRev(s.revision(bound)))
		case 9:
			opts = append(opts, clientv3.WithMaxCreateRev(s.revision(bound)))
		}
		return clientv3.OpGet(key, opts...)
	}
}

func drawTxn(t *rapid.T, depth int) makeOp {
	compares := rapid.SliceOfN(rapid.Custom(drawCompare), 0, 2).Draw(t, "compares")
	branch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) makeOp { return drawOp(t, depth) }), 0, 4)
	then, otherwise := branch.Draw(t, "then"), branch.Draw(t, "else")
	return func(s *session) clientv3.Op {
		var cmps []clientv3.Cmp
		for _, make := range compares {
			cmps = append(cmps, make(s))
		}
		return clientv3.OpTxn(cmps, makeOps(s, then), makeOps(s, otherwise))
	}
}

func makeOps(s *session, makers []makeOp) []clientv3.Op {
	var ops []clientv3.Op
	for _, make := range makers {
		ops = append(ops, make(s))
	}
	return ops
}

func drawCompare(t *rapid.T) func(*session) clientv3.Cmp {
	name := drawName(t)
	result := rapid.SampledFrom([]string{"=", "=", "!=", "<", ">"}).Draw(t, "result")
	revision := rapid.Int64Range(0, 12).Draw(t, "revision")
	lease, ranged := drawLease(t), rapid.IntRange(0, 4).Draw(t, "ranged") == 0
	target := rapid.IntRange(0, 4).Draw(t, "target")
	return func(s *session) clientv3.Cmp {
		key := s.key(name)
		var c clientv3.Cmp
		switch target {
		case 0:
			c = clientv3.Compare(clientv3.CreateRevision(key), result, s.revision(revision))
		case 1:
			c = clientv3.Compare(clientv3.ModRevision(key), result, s.revision(revision))
		case 2:
			c = clientv3.Compare(clientv3.Version(key), result, revision)
		case 3:
			c = clientv3.Compare(clientv3.Value(key), result, "x")
		default:
			c = clientv3.Compare(clientv3.LeaseValue(key), sameOrNot(result), s.lease(lease))
		}
		if ranged {
			c = c.WithPrefix()
		}
		return c
	}
}

// sameOrNot keeps to compares that do not depend on the ids of leases.
func sameOrNot(result string) string {
	if result == "=" {
		return "="
	}
	return "!="
}
