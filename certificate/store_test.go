package certificate_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/certificate"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
)

// shake does one handshake with the server's settings and returns both ends' errors and what the client saw.
func shake(t *testing.T, server, client *tls.Config) (seen tls.ConnectionState, clientErr, serverErr error) {
	t.Helper()
	near, far := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	for _, end := range []net.Conn{near, far} {
		if err := end.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
	}
	served := make(chan error, 1)
	go func() {
		end := tls.Server(far, server)
		err := end.Handshake()
		if err == nil {
			_, err = end.Write([]byte("x")) // in TLS 1.3 the client learns of a refused certificate only by reading
		}
		served <- err
		far.Close()
	}()
	end := tls.Client(near, client)
	clientErr = end.Handshake()
	if clientErr == nil {
		_, clientErr = end.Read(make([]byte, 1))
	}
	seen = end.ConnectionState()
	near.Close()
	return seen, clientErr, <-served
}

func TestClientCertificates(t *testing.T) {
	ours, theirs := certtest.NewAuthority(t), certtest.NewAuthority(t)
	soon := time.Now().Add(time.Hour)
	files := certtest.Write(t, ours.Sign(t, "server", soon, "localhost"), ours)
	valid, foreign := ours.Sign(t, "alice", soon), theirs.Sign(t, "alice", soon)
	expired, server := ours.Sign(t, "alice", time.Now().Add(-time.Minute)), ours.Sign(t, "server", soon, "localhost")
	for _, test := range []struct {
		name              string
		insecure, require bool
		client            *certtest.Pair
		want              bool
	}{
		{"none", false, false, nil, true},
		{"none where one is required", false, true, nil, false},
		{"valid", false, false, &valid, true},
		{"valid and required", false, true, &valid, true},
		{"another authority", false, false, &foreign, false},
		{"another authority, insecure", true, false, &foreign, true},
		{"none, insecure and required", true, true, nil, false},
		{"expired", false, false, &expired, false},
		{"a server's", false, false, &server, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, err := certificate.Open(certificate.Options{
				CertificateFile: files.Certificate, KeyFile: files.Key, TrustFile: files.Trust, RefreshCheck: time.Hour,
				AllowInsecure: test.insecure, Require: test.require,
			})
			if err != nil {
				t.Fatal(err)
			}
			client := &tls.Config{RootCAs: ours.Pool(), ServerName: "localhost"}
			if test.client != nil {
				pair := test.client.TLS(t)
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				client.MaxVersion = version
				_, clientErr, serverErr := shake(t, store.Config(certificate.Protocols{}), client)
				if (clientErr == nil && serverErr == nil) != test.want {
					t.Errorf("TLS %x: client %v, server %v", version, clientErr, serverErr)
				}
			}
		})
	}
}

// What AllowInsecure lets in authenticates nobody: Verify still refuses it.
func TestVerify(t *testing.T) {
	ours, theirs := certtest.NewAuthority(t), certtest.NewAuthority(t)
	soon := time.Now().Add(time.Hour)
	files := certtest.Write(t, ours.Sign(t, "server", soon, "localhost"), ours)
	open := func(trust string) *certificate.Store {
		store, err := certificate.Open(certificate.Options{
			CertificateFile: files.Certificate, KeyFile: files.Key, TrustFile: trust, AllowInsecure: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	chain := func(pair certtest.Pair) []*x509.Certificate { return []*x509.Certificate{pair.TLS(t).Leaf} }
	store := open(files.Trust)
	if err := store.Verify(chain(ours.Sign(t, "alice", soon))); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another authority": store.Verify(chain(theirs.Sign(t, "alice", soon))),
		"nothing":           store.Verify(nil),
		"no trust":          open("").Verify(chain(ours.Sign(t, "alice", soon))),
	} {
		if err == nil {
			t.Errorf("%s: verified", name)
		}
	}
}

// New files are used without a restart; broken ones leave the old pair and are told of once.
func TestReload(t *testing.T) {
	authority := certtest.NewAuthority(t)
	first, second := authority.Sign(t, "first", time.Now().Add(time.Hour), "localhost"), authority.Sign(t, "second", time.Now().Add(time.Hour), "localhost")
	files := certtest.Write(t, first, authority)
	var log bytes.Buffer
	store, err := certificate.Open(certificate.Options{
		CertificateFile: files.Certificate, KeyFile: files.Key, TrustFile: files.Trust, Log: zerolog.New(&log),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
	served := func() string {
		seen, clientErr, serverErr := shake(t, store.Config(certificate.Protocols{}), client)
		if clientErr != nil || serverErr != nil {
			t.Fatalf("client %v, server %v", clientErr, serverErr)
		}
		return seen.PeerCertificates[0].Subject.CommonName
	}
	steps := []struct {
		name     string
		change   func() error
		want     string
		warnings int
	}{
		{"as started", func() error { return nil }, "first", 0},
		{"the certificate alone", func() error { return os.WriteFile(files.Certificate, second.Certificate, 0o600) }, "first", 1},
		{"again", func() error { return nil }, "first", 1},
		{"an empty key", func() error { return os.WriteFile(files.Key, nil, 0o600) }, "first", 2},
		{"no key", func() error { return os.Remove(files.Key) }, "first", 3},
		{"the key, too", func() error { return os.WriteFile(files.Key, second.Key, 0o600) }, "second", 3},
		{"no authorities", func() error { return os.WriteFile(files.Trust, []byte("x"), 0o600) }, "second", 4},
		{"all back", func() error { files.Replace(t, first); return os.WriteFile(files.Trust, authority.PEM(), 0o600) }, "first", 4},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := served(); got != step.want {
			t.Errorf("%s: served by %q, want %q", step.name, got, step.want)
		}
		if got := strings.Count(log.String(), "the old ones stay"); got != step.warnings {
			t.Errorf("%s: %d warnings, want %d\n%s", step.name, got, step.warnings, log.String())
		}
	}
}

// Within the check interval the files are left alone.
func TestRefreshCheck(t *testing.T) {
	authority := certtest.NewAuthority(t)
	files := certtest.Write(t, authority.Sign(t, "first", time.Now().Add(time.Hour), "localhost"), authority)
	store, err := certificate.Open(certificate.Options{CertificateFile: files.Certificate, KeyFile: files.Key, RefreshCheck: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	files.Replace(t, authority.Sign(t, "second", time.Now().Add(time.Hour), "localhost"))
	seen, _, _ := shake(t, store.Config(certificate.Protocols{}), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
	if got := seen.PeerCertificates[0].Subject.CommonName; got != "first" {
		t.Errorf("served by %q", got)
	}
}

func TestOpenFaults(t *testing.T) {
	authority := certtest.NewAuthority(t)
	files := certtest.Write(t, authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), authority)
	other := certtest.Write(t, authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), authority)
	for _, test := range []struct {
		options certificate.Options
		fault   string
	}{
		{certificate.Options{KeyFile: files.Key}, "tlsCertificateFilePath"},
		{certificate.Options{CertificateFile: files.Certificate, KeyFile: "/nowhere"}, "tlsKeyFilePath"},
		{certificate.Options{CertificateFile: files.Certificate, KeyFile: other.Key}, "private key does not match"},
		{certificate.Options{CertificateFile: files.Certificate, KeyFile: files.Key, TrustFile: files.Key}, "tlsTrustCertsFilePath"},
		{certificate.Options{CertificateFile: files.Certificate, KeyFile: files.Key, Require: true}, "tlsRequireTrustedClientCertOnConnect"},
	} {
		if _, err := certificate.Open(test.options); err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%+v: %v, want a fault of %s", test.options, err, test.fault)
		}
	}
}

func TestParseProtocols(t *testing.T) {
	const gcm, chacha, new13 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"
	for _, test := range []struct {
		names, suites string
		min, max      uint16
		chosen        int
		ignored       int
		fault         string
	}{
		{"", "", 0, 0, 0, 0, ""},
		{"TLSv1.3,TLSv1.2", "", tls.VersionTLS12, tls.VersionTLS13, 0, 0, ""},
		{"TLSv1.3", "", tls.VersionTLS13, tls.VersionTLS13, 0, 0, ""},
		{"TLSv1.2", gcm + "," + chacha, tls.VersionTLS12, tls.VersionTLS12, 2, 0, ""},
		{"", gcm + ",TLS_RSA_WITH_NULL_SHA", 0, 0, 1, 1, ""},
		{"", new13, tls.VersionTLS13, 0, 0, 0, ""},
		{"", gcm + "," + new13, 0, 0, 1, 0, ""},
		{"TLSv1.2", new13, 0, 0, 0, 0, "leaves out"},
		{"TLSv1.3,TLSv1.1", "", 0, 0, 0, 0, "cannot be left out"},
		{"SSLv3", "", 0, 0, 0, 0, "SSLv3: want"},
		{"", "TLS_RSA_WITH_NULL_SHA", 0, 0, 0, 0, "none of these suites"},
	} {
		got, ignored, err := certificate.ParseProtocols(split(test.names), split(test.suites))
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s %s: %v, want %q", test.names, test.suites, err, test.fault)
			}
			continue
		}
		if err != nil || got.Min != test.min || got.Max != test.max || len(got.Suites) != test.chosen || len(ignored) != test.ignored {
			t.Errorf("%s %s: %+v, %v, %v", test.names, test.suites, got, ignored, err)
		}
	}
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// A file that is being written changes nothing, also where what is there of it could be used.
func TestFileThatIsCutOff(t *testing.T) {
	first, second := certtest.NewAuthority(t), certtest.NewAuthority(t)
	soon := time.Now().Add(time.Hour)
	files := certtest.Write(t, first.Sign(t, "server", soon, "localhost"), first)
	put := func(path string, parts ...[]byte) {
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chain, err := os.ReadFile(files.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	put(files.Trust, first.PEM(), second.PEM())
	put(files.Certificate, chain, first.PEM())
	store, err := certificate.Open(certificate.Options{CertificateFile: files.Certificate, KeyFile: files.Key, TrustFile: files.Trust})
	if err != nil {
		t.Fatal(err)
	}
	half := func(a *certtest.Authority) []byte { return a.PEM()[:len(a.PEM())/2] }
	bob := []*x509.Certificate{second.Sign(t, "bob", soon).TLS(t).Leaf}
	for name, trust := range map[string][][]byte{"at its end": {first.PEM(), half(second)}, "within": {half(second), first.PEM()}} {
		put(files.Trust, trust...)
		if err := store.Verify(bob); err != nil {
			t.Errorf("trust cut off %s: %v", name, err)
		}
	}
	put(files.Trust, first.PEM(), second.PEM())
	put(files.Certificate, chain, half(first))
	seen, _, serverErr := shake(t, store.Config(certificate.Protocols{}), &tls.Config{RootCAs: first.Pool(), ServerName: "localhost"})
	if serverErr != nil || len(seen.PeerCertificates) != 2 {
		t.Errorf("chain cut off: %d certificates, %v", len(seen.PeerCertificates), serverErr)
	}
	put(files.Certificate, chain)
	put(files.Trust, first.PEM())
	if err := store.Verify(bob); err == nil {
		t.Error("whole files are not read")
	}
}
