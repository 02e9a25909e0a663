package keyspace

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestTopicKeys holds the layout: a change here is a change of what is stored.
func TestTopicKeys(t *testing.T) {
	s := New("p", "c")
	topic := s.Topic(0x2a)
	sub := topic.Subscription(3)
	id := txn.ID{Most: 1, Least: 0xabc}
	for got, want := range map[string]string{
		s.Tenant("a"):         "/p/c/topics/tenant/a",
		s.Namespace("a", "b"): "/p/c/topics/namespace/a/b",
		s.Partitioned("persistent", "a", "b", "t"):    "/p/c/topics/partitioned/persistent/a/b/t",
		s.TopicName("persistent", "a", "b", "../x/y"): "/p/c/topics/name/persistent/a/b/..%2Fx%2Fy",
		topic.Owner():              "/p/c/topics/data/000000000000002a/owner",
		topic.Dormant():            "/p/c/topics/data/000000000000002a/dormant",
		topic.Entries(1, 2):        "/p/c/topics/data/000000000000002a/e/0000000000000001/0000000000000002",
		topic.TxnEntries(1, 2, id): "/p/c/topics/data/000000000000002a/e/0000000000000001/0000000000000002.00000000000000010000000000000abc",
		topic.Epoch():              "/p/c/topics/data/000000000000002a/m/epoch",
		topic.Tail():               "/p/c/topics/data/000000000000002a/m/tail",
		topic.Ledger(9):            "/p/c/topics/data/000000000000002a/m/ledger/0000000000000009",
		topic.Dedup(9):             "/p/c/topics/data/000000000000002a/m/dedup/0000000000000009",
		topic.Txn(id):              "/p/c/topics/data/000000000000002a/m/txn/00000000000000010000000000000abc",
		sub.Name():                 "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/name",
		sub.Frontier():             "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/frontier",
		sub.Acked(1, 2):            "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/acked/0000000000000001/0000000000000002",
		sub.Batch(1, 2):            "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/batch/0000000000000001/0000000000000002",
		sub.Committed(id):          "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/pending/00000000000000010000000000000abc/committed",
		sub.Pending(id, 5):         "/p/c/topics/data/000000000000002a/m/sub/0000000000000003/pending/00000000000000010000000000000abc/0000000000000005",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTopicKeysComeBack(t *testing.T) {
	topic, id := New("p", "c").Topic(1), txn.ID{Most: 1 << 63, Least: 77}
	l, last, _, inTxn, ok := topic.ParseEntries([]byte(topic.Entries(5, 1<<50)))
	if l != 5 || last != 1<<50 || inTxn || !ok {
		t.Error("plain block")
	}
	l, last, got, inTxn, ok := topic.ParseEntries([]byte(topic.TxnEntries(5, 6, id)))
	if l != 5 || last != 6 || got != id || !inTxn || !ok {
		t.Error("block of a transaction")
	}
	if got, ok := topic.ParseLedger([]byte(topic.Ledger(8))); got != 8 || !ok {
		t.Error("ledger")
	}
	if got, ok := topic.ParseDedup([]byte(topic.Dedup(8))); got != 8 || !ok {
		t.Error("page of producer names")
	}
	if got, ok := topic.ParseTxn([]byte(topic.Txn(id))); got != id || !ok {
		t.Error("transaction")
	}
	n, rest, ok := topic.ParseSubscription([]byte(topic.Subscription(4).Pending(id, 9)))
	kind, tail, _ := strings.Cut(rest, "/")
	got, number, ok2 := ParsePending(tail)
	if n != 4 || kind != "pending" || got != id || number != 9 || !ok || !ok2 {
		t.Error("pending acknowledgement")
	}
	if got, ok := ParseCommitted(strings.TrimPrefix(topic.Subscription(4).Committed(id), topic.Subscription(4).Prefix()+"pending/")); got != id || !ok {
		t.Error("committed acknowledgement")
	}
	if _, ok := ParseCommitted(tail); ok {
		t.Error("a pending acknowledgement is taken for a committed one")
	}
	for _, bad := range []string{"", topic.Tail(), topic.Entries(1, 2) + "x", topic.Entries(1, 2) + ".12", strings.ToUpper(topic.Entries(10, 11))} {
		if _, _, _, _, ok := topic.ParseEntries([]byte(bad)); ok {
			t.Errorf("%q is taken for a block", bad)
		}
	}
	if _, _, ok := ParsePair("0000000000000001"); ok {
		t.Error("half a pair")
	}
}

// TestBlockOrder: the first key at or behind Entries(p) is the block that p is in, whether of a transaction or not.
func TestBlockOrder(t *testing.T) {
	topic, id := New("p", "c").Topic(1), txn.ID{Least: 1}
	keys := []string{
		topic.Entries(1, 0), topic.TxnEntries(1, 3, id), topic.Entries(1, 4), topic.TxnEntries(1, 255, id), topic.TxnEntries(2, 0, id), topic.Entries(300, 1),
	}
	if !slices.IsSorted(keys) {
		t.Fatalf("not in order: %q", keys)
	}
	if topic.Entries(1, 3) > keys[1] || topic.Entries(1, 4) < keys[1] || !bytes.HasPrefix([]byte(keys[0]), []byte(topic.EntryPrefix())) {
		t.Error("a search would miss a block of a transaction")
	}
}
