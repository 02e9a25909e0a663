package authentication

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// certificateOf is a certificate of nobody's, with this common name.
func certificateOf(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// world is a service with all providers. Certificates of "mallory" do not verify.
func world(t *testing.T, change func(*Options)) *Service {
	t.Helper()
	token, err := NewToken(TokenOptions{SecretKey: dataURL(secret(32))})
	if err != nil {
		t.Fatal(err)
	}
	basic, err := NewBasic(dataURL([]byte(htpasswdLines)))
	if err != nil {
		t.Fatal(err)
	}
	certificates := NewCertificate(func(chain []*x509.Certificate) error {
		switch chain[0].Subject.CommonName {
		case "mallory":
			return errors.New("signed by nobody")
		case "late":
			return x509.CertificateInvalidError{Cert: chain[0], Reason: x509.Expired}
		}
		return nil
	})
	options := Options{
		Providers: []Provider{certificates, token, basic}, ProxyRoles: []string{"proxy", "proxy2"}, SuperUserRoles: []string{"admin", "proxy"},
	}
	if change != nil {
		change(&options)
	}
	s := New(options)
	s.now = func() time.Time { return now }
	return s
}

func tokenOf(t *testing.T, role string, left time.Duration) string {
	return sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": role, "exp": now.Add(left).Unix()})
}

func TestLogin(t *testing.T) {
	anonymous := func(o *Options) { o.AnonymousRole = "anonymous" }
	original := func(o *Options) { o.AuthenticateOriginal = true }
	connect := func(method, data string) *pulsarproto.CommandConnect {
		return &pulsarproto.CommandConnect{AuthMethodName: &method, AuthData: []byte(data)}
	}
	through := func(c *pulsarproto.CommandConnect, principal, method, data string) *pulsarproto.CommandConnect {
		c.OriginalPrincipal, c.OriginalAuthMethod, c.OriginalAuthData = &principal, &method, &data
		return c
	}
	alice, proxy := tokenOf(t, "alice", time.Hour), tokenOf(t, "proxy", 2*time.Hour)
	hour := now.Add(time.Hour)
	tests := []struct {
		name        string
		change      func(*Options)
		certificate string
		connect     *pulsarproto.CommandConnect
		want        cnx.Identity
		text        string // of the refusal
	}{
		{"token", nil, "", connect("token", alice), cnx.Identity{Caller: cnx.Caller{Role: "alice", Known: true}, Expires: hour, Method: "token"}, ""},
		{"basic", nil, "", connect("basic", "admin:123456"), cnx.Identity{Caller: cnx.Caller{Role: "admin", Known: true, Super: true}, Method: "basic"}, ""},
		{"certificate", nil, "bob", connect("tls", ""), cnx.Identity{Caller: cnx.Caller{Role: "bob", Known: true}, Expires: hour}, ""},
		{"token beside a certificate", nil, "bob", connect("token", alice), cnx.Identity{Caller: cnx.Caller{Role: "alice", Known: true}, Expires: hour, Method: "token"}, ""},
		{"no certificate", anonymous, "", connect("tls", ""), cnx.Identity{}, "Unable to authenticate: a TLS client certificate is required"},
		{"certificate of another authority", anonymous, "mallory", connect("tls", ""), cnx.Identity{}, invalid},
		{"certificate that has expired", nil, "late", connect("tls", ""), cnx.Identity{}, expired},
		{"certificate without a name", nil, "", connect("tls", ""), cnx.Identity{}, "Unable to authenticate: a TLS client certificate is required"},
		{"expired token", anonymous, "", connect("token", tokenOf(t, "alice", -time.Minute)), cnx.Identity{}, expired},
		{"wrong password", anonymous, "", connect("basic", "admin:1"), cnx.Identity{}, invalid},
		{"nothing", nil, "", &pulsarproto.CommandConnect{}, cnx.Identity{}, missing},
		{"method none", nil, "", connect("none", ""), cnx.Identity{}, missing},
		{"another method", nil, "", connect("sasl", "x"), cnx.Identity{}, missing},
		{"anonymous", anonymous, "", &pulsarproto.CommandConnect{}, cnx.Identity{Caller: cnx.Caller{Role: "anonymous", Known: true}}, ""},
		{"anonymous with a certificate that is not used", anonymous, "bob", &pulsarproto.CommandConnect{}, cnx.Identity{Caller: cnx.Caller{Role: "anonymous", Known: true}}, ""},
		{"empty token", anonymous, "", connect("token", ""), cnx.Identity{}, missing},

		{"proxy", nil, "", through(connect("token", proxy), "alice", "", ""), cnx.Identity{Caller: cnx.Caller{Role: "alice", Proxy: "proxy", Known: true}, Expires: now.Add(2 * time.Hour)}, ""},
		{"super user through a super proxy", nil, "", through(connect("token", proxy), "admin", "", ""), cnx.Identity{Caller: cnx.Caller{Role: "admin", Proxy: "proxy", Known: true, Super: true}, Expires: now.Add(2 * time.Hour)}, ""},
		{"super user through another proxy", nil, "", through(connect("token", tokenOf(t, "proxy2", time.Hour)), "admin", "", ""), cnx.Identity{Caller: cnx.Caller{Role: "admin", Proxy: "proxy2", Known: true}, Expires: hour}, ""},
		{"proxy for nobody", nil, "", connect("token", proxy), cnx.Identity{}, invalid},
		{"proxy for a proxy", nil, "", through(connect("token", proxy), "proxy2", "", ""), cnx.Identity{}, invalid},
		{"proxy for itself", nil, "", through(connect("token", proxy), "proxy", "", ""), cnx.Identity{}, invalid},
		{"no proxy for another", nil, "", through(connect("token", alice), "admin", "", ""), cnx.Identity{}, invalid},
		{"no proxy for itself", nil, "", through(connect("token", alice), "alice", "", ""), cnx.Identity{}, invalid},
		{"anonymous for another", anonymous, "", through(&pulsarproto.CommandConnect{}, "admin", "", ""), cnx.Identity{}, invalid},

		{"original credentials", original, "", through(connect("token", proxy), "alice", "token", alice), cnx.Identity{Caller: cnx.Caller{Role: "alice", Proxy: "proxy", Known: true}, Expires: hour, Method: "token"}, ""},
		{"original credentials without a name", original, "", through(connect("token", proxy), "", "token", alice), cnx.Identity{Caller: cnx.Caller{Role: "alice", Proxy: "proxy", Known: true}, Expires: hour, Method: "token"}, ""},
		{"original credentials of another", original, "", through(connect("token", proxy), "admin", "token", alice), cnx.Identity{}, invalid},
		{"original credentials of a proxy", original, "", through(connect("token", proxy), "", "token", proxy), cnx.Identity{}, invalid},
		{"forged original credentials", original, "", through(connect("token", proxy), "alice", "token", alice+"x"), cnx.Identity{}, invalid},
		{"no original credentials", original, "", through(connect("token", proxy), "alice", "", ""), cnx.Identity{}, missing},
		{"the proxy's certificate as the client's", original, "proxy", through(connect("token", proxy), "", "tls", ""), cnx.Identity{}, "Unable to authenticate: a TLS client certificate is required"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var chain []*x509.Certificate
			if test.certificate != "" {
				chain = append(chain, certificateOf(t, test.certificate))
			}
			got, err := world(t, test.change).Login(chain, test.connect)
			if test.text != "" {
				checkRefused(t, err, test.text)
				return
			}
			if err != nil || !got.Expires.Equal(test.want.Expires) || got.Caller != test.want.Caller || got.Method != test.want.Method {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestCertificateWithoutName(t *testing.T) {
	_, err := world(t, nil).Login([]*x509.Certificate{certificateOf(t, "")}, &pulsarproto.CommandConnect{AuthMethodName: proto.String("tls")})
	checkRefused(t, err, invalid)
}

func TestRefresh(t *testing.T) {
	identity := cnx.Identity{Caller: cnx.Caller{Role: "alice", Known: true}, Expires: now.Add(time.Minute), Method: "token"}
	data := func(method, data string) *pulsarproto.AuthData {
		return &pulsarproto.AuthData{AuthMethodName: &method, AuthData: []byte(data)}
	}
	s := world(t, func(o *Options) { o.AnonymousRole = "alice" })
	got, err := s.Refresh(identity, nil, data("token", tokenOf(t, "alice", time.Hour)))
	if err != nil || got.Caller != identity.Caller || got.Method != "token" || !got.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, test := range []struct {
		name string
		data *pulsarproto.AuthData
		text string
	}{
		{"another role", data("token", tokenOf(t, "admin", time.Hour)), invalid},
		{"another method", data("basic", "admin:123456"), invalid},
		{"no method, although anonymous is the same role", data("", ""), invalid},
		{"expired", data("token", tokenOf(t, "alice", -time.Minute)), expired},
		{"nothing", data("token", ""), missing},
		{"absent", nil, invalid},
	} {
		_, err := s.Refresh(identity, nil, test.data)
		if err == nil {
			t.Errorf("%s: accepted", test.name)
			continue
		}
		checkRefused(t, err, test.text)
	}
}

func TestRequest(t *testing.T) {
	anonymous := func(o *Options) { o.AnonymousRole = "anonymous" }
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	basic := func(data string) http.Header {
		return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(data))}}
	}
	with := func(header http.Header, original string) http.Header {
		header.Set("X-Original-Principal", original)
		return header
	}
	tests := []struct {
		name        string
		change      func(*Options)
		certificate string
		header      http.Header
		want        cnx.Caller
		text        string
	}{
		{"bearer", nil, "", bearer(tokenOf(t, "alice", time.Hour)), cnx.Caller{Role: "alice", Known: true}, ""},
		{"small letters", nil, "", http.Header{"Authorization": {"bearer " + tokenOf(t, "alice", time.Hour)}}, cnx.Caller{Role: "alice", Known: true}, ""},
		{"basic", nil, "", basic("admin:123456"), cnx.Caller{Role: "admin", Known: true, Super: true}, ""},
		{"certificate", nil, "bob", http.Header{}, cnx.Caller{Role: "bob", Known: true}, ""},
		{"basic beside a certificate", nil, "bob", basic("admin:123456"), cnx.Caller{Role: "admin", Known: true, Super: true}, ""},
		{"anonymous", anonymous, "", http.Header{}, cnx.Caller{Role: "anonymous", Known: true}, ""},
		{"nothing", nil, "", http.Header{}, cnx.Caller{}, missing},
		{"certificate of another authority", anonymous, "mallory", http.Header{}, cnx.Caller{}, invalid},
		{"expired", anonymous, "", bearer(tokenOf(t, "alice", -time.Minute)), cnx.Caller{}, expired},
		{"wrong password", anonymous, "", basic("admin:x"), cnx.Caller{}, invalid},
		{"broken base64", anonymous, "", http.Header{"Authorization": {"Basic ?"}}, cnx.Caller{}, invalid},
		{"another scheme", anonymous, "", http.Header{"Authorization": {"Digest x"}}, cnx.Caller{}, invalid},
		{"method that is not configured", func(o *Options) { o.Providers, o.AnonymousRole = nil, "anonymous" }, "", basic("admin:123456"), cnx.Caller{}, invalid},
		{"proxy", nil, "", with(bearer(tokenOf(t, "proxy", time.Hour)), "alice"), cnx.Caller{Role: "alice", Proxy: "proxy", Known: true}, ""},
		{"proxy for nobody", nil, "", bearer(tokenOf(t, "proxy", time.Hour)), cnx.Caller{}, invalid},
		{"no proxy for another", nil, "", with(bearer(tokenOf(t, "alice", time.Hour)), "admin"), cnx.Caller{}, invalid},
		{"no proxy for itself", nil, "", with(bearer(tokenOf(t, "alice", time.Hour)), "alice"), cnx.Caller{Role: "alice", Known: true}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header = test.header
			if test.certificate != "" {
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificateOf(t, test.certificate)}}
			}
			got, err := world(t, test.change).Request(r)
			if test.text != "" {
				checkRefused(t, err, test.text)
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}
