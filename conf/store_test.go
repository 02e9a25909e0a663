package conf

import (
	"slices"
	"strings"
	"testing"
)

// A stock file's ZooKeeper is passed over with one warning, unless the command needs an etcd.
func TestNoEtcd(t *testing.T) {
	config, report := load(t, Sources{Set: []string{"metadataStoreUrl=zk:a:2181,b:2181"}})
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "the store is embedded") || config.EtcdEndpoints() != nil {
		t.Errorf("zk: %v", report.Warnings)
	}
	for _, set := range [][]string{nil, {"metadataStoreUrl=zk:a:2181"}, {"metadataStoreUrl=http://a:2379"}} {
		got := faults(t, Sources{Set: set, NeedsEtcd: true})
		if len(got) != 1 || got[0].Key != "metadataStoreUrl" || !strings.Contains(got[0].Rule, "must name an etcd cluster") {
			t.Errorf("%v: %v", set, got)
		}
	}
}

func TestEtcdEndpoints(t *testing.T) {
	for value, want := range map[string]string{
		"etcd:http://a:2379":                     "http://a:2379",
		"etcd:http://a:2379,http://b:1":          "http://a:2379 http://b:1",
		"etcd:https://a:2379,b:1, c":             "https://a:2379 https://b:1 https://c:2379",
		"etcd:a,a:2379,http://a:2379/,[::1]:4":   "http://a:2379 http://[::1]:4",
		"etcd:http://10.0.0.1:2379,,10.0.0.2:80": "http://10.0.0.1:2379 http://10.0.0.2:80",
	} {
		config, _ := load(t, Sources{Set: []string{"metadataStoreUrl=" + value}, NeedsEtcd: true})
		if got := strings.Join(config.EtcdEndpoints(), " "); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
	for _, value := range []string{
		"etcd:", "etcd:,", "etcd:http://", "etcd:ftp://a:1", "etcd:http://a,https://b", "etcd:http://u:p@a:1", "etcd:http://a:0",
		"etcd:http://a:65536", "etcd:http://a:x", "etcd:http://a/path", "etcd:http://a?q=1", "etcd:http://a b:1", "etcd:http://:2379",
	} {
		got := faults(t, Sources{Set: []string{"metadataStoreUrl=" + value}})
		if len(got) != 1 || got[0].Key != "metadataStoreUrl" || !strings.HasPrefix(got[0].Rule, "must ") {
			t.Errorf("%s: %v", value, got)
		}
	}
}

// With an etcd cluster other defaults hold, and what would not be honoured is refused (C-2).
func TestEtcdSettings(t *testing.T) {
	const plain, tls = "metadataStoreUrl=etcd:http://a:1", "metadataStoreUrl=etcd:https://a:1"
	config, _ := load(t, Sources{Set: []string{plain}})
	if config.InitialNumTransactionCoordinators != 16 || config.TransactionMaxParticipantBytes != 256<<10 {
		t.Errorf("%d coordinators, %d bytes of participants", config.InitialNumTransactionCoordinators, config.TransactionMaxParticipantBytes)
	}
	config, _ = load(t, Sources{})
	if config.InitialNumTransactionCoordinators != 1 || config.TransactionMaxParticipantBytes != 1<<20 {
		t.Errorf("embedded: %d coordinators, %d bytes of participants", config.InitialNumTransactionCoordinators, config.TransactionMaxParticipantBytes)
	}
	for _, test := range []struct {
		set   []string
		fault string // key; empty: none
	}{
		{[]string{tls, "etcdTrustCertsFilePath=ca.pem", "etcdCertificateFilePath=c.pem", "etcdKeyFilePath=k.pem", "etcdUser=u", "etcdPassword=p"}, ""},
		{[]string{plain, "etcdTrustCertsFilePath=ca.pem"}, "etcdTrustCertsFilePath"},
		{[]string{tls, "etcdCertificateFilePath=c.pem"}, "etcdKeyFilePath"},
		{[]string{tls, "etcdKeyFilePath=k.pem"}, "etcdCertificateFilePath"},
		{[]string{tls, "etcdUser=u"}, "etcdPassword"},
		{[]string{tls, "etcdPassword=p"}, "etcdUser"},
		{[]string{plain, "transactionMaxParticipantBytes=393217"}, "transactionMaxParticipantBytes"},
		{[]string{plain, "transactionMaxParticipantBytes=393216"}, ""},
		{[]string{plain, "coordinatorLeaseSeconds=1"}, "coordinatorLeaseSeconds"},
		{[]string{plain, "clusterName=standalone/tc"}, "clusterName"},
		{[]string{plain, "clusterName=standalone-tc"}, ""},
		{[]string{plain, "etcdMaxTxnOps=127"}, "etcdMaxTxnOps"},
		{[]string{plain, "etcdMaxRequestBytes=1000"}, "etcdMaxRequestBytes"},
	} {
		if test.fault == "" {
			load(t, Sources{Set: test.set})
			continue
		}
		got := faults(t, Sources{Set: test.set})
		if !slices.ContainsFunc(got, func(f Fault) bool { return f.Key == test.fault }) {
			t.Errorf("%v: %v, want a fault of %s", test.set, got, test.fault)
		}
	}
	_, report := load(t, Sources{Set: []string{plain, "etcdUser=u", "etcdPassword=open sesame"}})
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "in clear") || strings.Contains(report.Warnings[0], "sesame") {
		t.Errorf("warnings: %v", report.Warnings)
	}
}

// A password that was put into the URL is in no text.
func TestPasswordInStoreURL(t *testing.T) {
	for _, value := range []string{"etcd:http://root:hunter2@a:2379", "etcd:a:1,root:hunter2@b:1", "etcd:http://root:hunter2@a b:1", "zk:root:hunter2@a:2181"} {
		_, report, err := Load(Sources{Set: []string{"metadataStoreUrl=" + value}})
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", value, err)
		}
		if text := report.text(); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", value, text)
		}
	}
}
