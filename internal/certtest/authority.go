package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return &Authority{sign(t, template, template, key, key), key}
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Pool trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Sign returns a certificate for a common name that ends at the given time. hosts are the names of a server; without any it
// is a client's.
func (a *Authority) Sign(t testing.TB, name string, until time.Time, hosts ...string) Pair {
	t.Helper()
	key := newKey(t)
	usage := x509.ExtKeyUsageClientAuth
	if len(hosts) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{encode("CERTIFICATE", sign(t, template, a.certificate, key, a.key).Raw), encode("EC PRIVATE KEY", der)}
}

// TLS is p as package tls takes it.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Files are the PEM files of a server or a client.
type Files struct{ Certificate, Key, Trust string }

// Write puts a pair and the authority that is trusted into a directory of the test's.
func Write(t testing.TB, pair Pair, trust *Authority) Files {
	t.Helper()
	dir := t.TempDir()
	files := Files{filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "trust.pem")}
	files.Replace(t, pair)
	put(t, files.Trust, trust.PEM())
	return files
}

// Client is what a client shows that has the files, and trusts.
func (f Files) Client() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, err
	}
	trust, err := os.ReadFile(f.Trust)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trust)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// Replace puts another pair in its place.
func (f Files) Replace(t testing.TB, pair Pair) {
	t.Helper()
	put(t, f.Certificate, pair.Certificate)
	put(t, f.Key, pair.Key)
}

func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
