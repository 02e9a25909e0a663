package conf

import (
	"strings"
	"testing"
)

// FC-40 and FC-41: which names of the environment count, and that values arrive as they are.
func TestEnvironment(t *testing.T) {
	file := write(t, "brokerServicePort=1\n#webServicePort=2\ndataDir=here")
	config, report := load(t, Sources{File: file, Environ: []string{
		"PULSAR_PREFIX_brokerServicePort=11",
		"PULSAR_PREFIX_webServicePort=12",
		"PULSAR_PREFIX_=nothing",
		"no equals sign",
		"PULSAR_PREFIX_dataDir=  a=b #c \"d\" $e \\f\ng é  ",
		"PULSAR_PREFIX_BROKERSERVICEPORT=13",
		"PULSAR_PREFIX_someKey=x",
		"maxMessageSize=1024",
		"clusterName=bare", "PULSAR_PREFIX_clusterName=prefixed",
		"notAKey=1", "HOME=/nowhere",
		"PULSAR_PREFIX_allowAutoTopicCreation=",
	}})
	if config.BrokerServicePort != 11 || config.WebServicePort != 12 || config.MaxMessageSize != 1024 || config.ClusterName != "prefixed" {
		t.Errorf("got %+v", config)
	}
	if want := "a=b #c \"d\" $e \\f\ng é"; config.DataDir != want {
		t.Errorf("dataDir=%q, want %q", config.DataDir, want)
	}
	var unknown []string
	for _, u := range report.Unknown {
		unknown = append(unknown, u.Key+">"+u.Suggestion)
	}
	if got := strings.Join(unknown, " "); got != "BROKERSERVICEPORT>brokerServicePort someKey>" {
		t.Errorf("unknown: %s", got)
	}
	if got := strings.Join(report.Warnings, "\n"); !strings.Contains(got, "environment PULSAR_PREFIX_ names no key") {
		t.Errorf("warnings: %s", got)
	}
	bad := faults(t, Sources{Environ: []string{"PULSAR_PREFIX_webServicePort=http", "PULSAR_PREFIX_brokerServicePort=x"}})
	if len(bad) != 2 || bad[0].String() != `environment PULSAR_PREFIX_brokerServicePort: brokerServicePort="x": must be a whole number from -1 to 65535` {
		t.Errorf("a bad value fails as in a file: %v", bad)
	}
}

// FC-40: secrets appear in no fault, report or table.
func TestSecrets(t *testing.T) {
	const secret = "hush-1234"
	sources := Sources{
		File:    write(t, "tokenSecretKey="+secret+"\nbasicAuthConf="+secret+"\nmySecretThing="+secret),
		Environ: []string{"PULSAR_PREFIX_brokerClientAuthenticationParameters=token:" + secret, "PULSAR_PREFIX_tlsKeyStorePassword=" + secret},
		Set:     []string{"sslFactoryPluginParams=" + secret, "somePassword=" + secret},
	}
	var out strings.Builder
	err := Check(&out, sources)
	if err == nil {
		t.Fatal("keystores are refused (C-2)")
	}
	if text := out.String() + err.Error(); strings.Contains(text, secret) || strings.Count(text, "***") != 2 {
		t.Errorf("secret shown, or not two values hidden:\n%s", text)
	}
	sources.Environ, sources.Set = sources.Environ[:1], nil
	out.Reset()
	if err := Check(&out, sources); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, secret) || strings.Count(text, "***") != 3 {
		t.Errorf("secret shown, or not three values hidden:\n%s", text)
	}
}
