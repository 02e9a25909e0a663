package main

import (
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/conf"
)

// A coordinator has no store of its own: it refuses to start without an etcd cluster, or with one that does not answer.
func TestCoordinatorNeedsEtcd(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"", "must name an etcd cluster"},
		{"zk:zk-1:2181", "must name an etcd cluster"},
		{"etcd:http://localhost:1,https://localhost:2", "must not mix"},
		{"etcd:http://localhost:1", "connection refused"},
	} {
		_, code, err := run("coordinator", "--set", "metadataStoreUrl="+test.url, "--set", "brokerServicePort=0", "--set", "webServicePort=0")
		if code != 1 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("metadataStoreUrl=%s: code %d, %v", test.url, code, err)
		}
	}
}

// The ready line names the store, and no password.
func TestStoreOfReadyLine(t *testing.T) {
	config, _, err := conf.Load(conf.Sources{Set: []string{"metadataStoreUrl=etcd:http://etcd-1:2379", "etcdUser=u", "etcdPassword=hidden"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := storeOf(config); got != "etcd http://etcd-1:2379" {
		t.Errorf("%q", got)
	}
}
