package conf

import (
	"slices"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	for _, test := range []struct {
		name        string
		set         []string
		binary, web int
	}{
		{"nothing set", nil, 6650, 8080},
		{"empty without TLS", []string{"brokerServicePort=", "webServicePort="}, 6650, 8080},
		{"empty beside TLS", []string{"brokerServicePort=", "brokerServicePortTls=6651", "tlsCertificateFilePath=c", "tlsKeyFilePath=k"}, -1, 8080},
		{"both", []string{"servicePort=", "servicePortTls=1", "webServicePort=", "webServicePortTls=2", "tlsCertificateFilePath=c", "tlsKeyFilePath=k"}, -1, -1},
		{"absent beside TLS", []string{"brokerServicePortTls=6651", "tlsCertificateFilePath=c", "tlsKeyFilePath=k"}, 6650, 8080},
	} {
		config, report := load(t, Sources{Set: test.set})
		if from := report.Origin("brokerServicePort").Kind; (from == Set) != (test.binary == -1) {
			t.Errorf("%s: brokerServicePort is said to come from %d", test.name, from)
		}
		if config.BrokerServicePort != test.binary || config.WebServicePort != test.web {
			t.Errorf("%s: ports %d and %d", test.name, config.BrokerServicePort, config.WebServicePort)
		}
	}
}

func TestProviders(t *testing.T) {
	const classes = " org.apache.pulsar.broker.authentication.AuthenticationProviderTls,,AuthenticationProviderToken , AuthenticationProviderTls,com.example.Own"
	if got := Providers(classes); !slices.Equal(got, []string{ProviderTLS, ProviderToken, "com.example.Own"}) {
		t.Errorf("got %q", got)
	}
}

func TestSecurityWarnings(t *testing.T) {
	token := []string{"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderToken", "tokenSecretKey=x"}
	for _, test := range []struct {
		set  []string
		want string // of the one warning; empty: none
	}{
		{[]string{"bindAddress=0.0.0.0"}, "bindAddress=0.0.0.0"},
		{append(slices.Clone(token), "bindAddress=0.0.0.0"), "authorizationEnabled=false"},
		{append(slices.Clone(token), "bindAddress=0.0.0.0", "authorizationEnabled=true"), ""},
		{append(slices.Clone(token), "authorizationEnabled=true", "superUserRoles=a,b", "anonymousUserRole=b"), "superUserRoles"},
	} {
		_, report := load(t, Sources{Set: test.set})
		if len(report.Warnings) > 1 || strings.Join(report.Warnings, "") == "" != (test.want == "") || !strings.HasPrefix(strings.Join(report.Warnings, ""), test.want) {
			t.Errorf("%v: warnings %q", test.set, report.Warnings)
		}
	}
}
