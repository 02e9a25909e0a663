package keyspace

import (
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestCoordinatorKeys holds the layout: a change here is a change of what is stored.
func TestCoordinatorKeys(t *testing.T) {
	s := New("p", "c")
	id := txn.ID{Most: 0x1f, Least: 0xabcdef0123456789}
	p := txn.Participant{Topic: "persistent://a/b/c"}
	for got, want := range map[string]string{
		s.Root():         "/p/c/",
		s.Schema():       "/p/c/meta/schema",
		s.Coordinators(): "/p/c/meta/coordinators",
		s.PeerSecret():   "/p/c/meta/peers",
		s.Instance("1f"): "/p/c/instances/1f",
		s.TC(1 << 63):    "/p/c/tc/8000000000000000/",
		s.Leader(1):      "/p/c/tc/0000000000000001/leader",
		s.Next(1):        "/p/c/tc/0000000000000001/next",
		s.LogPrefix(1):   "/p/c/tc/0000000000000001/log/",
		s.Log(1, 0x2a):   "/p/c/tc/0000000000000001/log/000000000000002a",
		s.OpenPrefix(id): "/p/c/tc/000000000000001f/open/abcdef0123456789/",
		s.Open(id, p):    "/p/c/tc/000000000000001f/open/abcdef0123456789/" + p.Hash(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
