package conf

import (
	"slices"
	"strings"
	"testing"
)

// Processes that share an etcd cluster must be able to reach each other (C-2): what is missing is refused by name, not found out later.
func TestSettingsForOthers(t *testing.T) {
	const etcd, plugin = "metadataStoreUrl=etcd:http://a:1", "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth."
	authentication := []string{"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderToken", "tokenSecretKey=data:;base64,aaaa"}
	tls := []string{"brokerServicePortTls=0", "tlsCertificateFilePath=c", "tlsKeyFilePath=k"}
	for _, test := range []struct {
		name  string
		set   [][]string
		fault string // key; empty: none
	}{
		{"nobody is asked who he is", [][]string{{etcd}}, ""},
		{"no credentials", [][]string{{etcd}, authentication}, "brokerClientAuthenticationPlugin"},
		{"credentials off", [][]string{{etcd, plugin + "AuthenticationDisabled"}, authentication}, "brokerClientAuthenticationPlugin"},
		{"credentials", [][]string{{etcd, plugin + "AuthenticationToken", "brokerClientAuthenticationParameters=token:sesame"}, authentication}, ""},
		{"anonymous", [][]string{{etcd, "anonymousUserRole=guest"}, authentication}, ""},
		{"one process", [][]string{authentication}, ""},
		{"TLS without a port", [][]string{{etcd, "brokerClientTlsEnabled=true"}}, "brokerServicePortTls"},
		{"TLS", [][]string{{etcd, "brokerClientTlsEnabled=true"}, tls}, ""},
		{"TLS only", [][]string{{etcd, "brokerServicePort=-1"}, tls}, "brokerClientTlsEnabled"},
	} {
		sources := Sources{Set: slices.Concat(test.set...)}
		if test.fault == "" {
			_, report := load(t, sources)
			clear := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "in clear") })
			if clear != (test.name == "credentials") || strings.Contains(strings.Join(report.Warnings, " "), "sesame") {
				t.Errorf("%s: warnings %v", test.name, report.Warnings)
			}
			continue
		}
		if got := faults(t, sources); len(got) != 1 || got[0].Key != test.fault {
			t.Errorf("%s: %v, want a fault of %s", test.name, got, test.fault)
		}
	}
}
