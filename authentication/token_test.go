package authentication

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// now is when the tests of this package take place.
var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func secret(n int) []byte { return []byte(strings.Repeat("k", n)) }

func dataURL(content []byte) string {
	return "data:;base64," + base64.StdEncoding.EncodeToString(content)
}

func sign(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func publicDER(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

type keys struct {
	rsa, otherRSA *rsa.PrivateKey
	ec            *ecdsa.PrivateKey
	ec384         *ecdsa.PrivateKey
}

func newKeys(t *testing.T) keys {
	t.Helper()
	var k keys
	var errs [4]error
	k.rsa, errs[0] = rsa.GenerateKey(rand.Reader, 2048)
	k.otherRSA, errs[1] = rsa.GenerateKey(rand.Reader, 2048)
	k.ec, errs[2] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.ec384, errs[3] = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestToken(t *testing.T) {
	k := newKeys(t)
	der := publicDER(t, &k.rsa.PublicKey)
	bySecret := TokenOptions{SecretKey: dataURL(secret(32))}
	byLongSecret := TokenOptions{SecretKey: dataURL(secret(64))}
	byRSA := TokenOptions{PublicKey: dataURL(der)}
	byEC := TokenOptions{PublicKey: dataURL(publicDER(t, &k.ec.PublicKey)), PublicAlg: "ES256"}
	withClaim, withAudience, withSkew := bySecret, bySecret, bySecret
	withClaim.AuthClaim = "roles"
	withAudience.AudienceClaim, withAudience.Audience = "aud", "here"
	withSkew.ClockSkew = time.Minute
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	alice := jwt.MapClaims{"sub": "alice"}

	tests := []struct {
		name    string
		options TokenOptions
		token   string
		role    string // empty: refused
		text    string // of the refusal
	}{
		{"HS256", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), alice), "alice", ""},
		{"a newline from a file", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), alice) + "\n", "alice", ""},
		{"HS512", byLongSecret, sign(t, jwt.SigningMethodHS512, secret(64), alice), "alice", ""},
		{"HS512 with a key too short for it", bySecret, sign(t, jwt.SigningMethodHS512, secret(32), alice), "", invalid},
		{"RS256", byRSA, sign(t, jwt.SigningMethodRS256, k.rsa, alice), "alice", ""},
		{"PS512", byRSA, sign(t, jwt.SigningMethodPS512, k.rsa, alice), "alice", ""},
		{"ES256", byEC, sign(t, jwt.SigningMethodES256, k.ec, alice), "alice", ""},
		{"ES384 for a key of 256 bits", byEC, sign(t, jwt.SigningMethodES384, k.ec384, alice), "", invalid},
		{"another secret", bySecret, sign(t, jwt.SigningMethodHS256, secret(33), alice), "", invalid},
		{"another RSA key", byRSA, sign(t, jwt.SigningMethodRS256, k.otherRSA, alice), "", invalid},
		{"HS256 by the public key in DER", byRSA, sign(t, jwt.SigningMethodHS256, der, alice), "", invalid},
		{"HS256 by the public key in PEM", byRSA, sign(t, jwt.SigningMethodHS256,
			pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), alice), "", invalid},
		{"none", bySecret, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, alice), "", invalid},
		{"none for a public key", byRSA, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, alice), "", invalid},
		{"a signature cut off", bySecret, strings.TrimRight(sign(t, jwt.SigningMethodHS256, secret(32), alice), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), "", invalid},
		{"expired", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "exp": at(-time.Second)}), "", expired},
		{"expired at the epoch", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "exp": 0}), "", expired},
		{"expired and forged", bySecret, sign(t, jwt.SigningMethodHS256, secret(33), jwt.MapClaims{"sub": "alice", "exp": at(-time.Second)}), "", invalid},
		{"expired within the skew", withSkew, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "exp": at(-30 * time.Second)}), "alice", ""},
		{"an expiry that is no number", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "exp": "soon"}), "", invalid},
		{"not yet valid", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "nbf": at(time.Minute)}), "", invalid},
		{"valid since a moment", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "nbf": at(-1)}), "alice", ""},
		{"no subject", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"iss": "x"}), "", invalid},
		{"an empty subject", bySecret, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": ""}), "", invalid},
		{"a claim of one's own", withClaim, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "roles": "bob"}), "bob", ""},
		{"a list of roles", withClaim, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"roles": []string{"carol", "bob"}}), "carol", ""},
		{"an empty list of roles", withClaim, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "roles": []string{}}), "", invalid},
		{"a role that is a number", withClaim, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"roles": 7}), "", invalid},
		{"the audience", withAudience, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "aud": "here"}), "alice", ""},
		{"one of several audiences", withAudience, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "aud": []string{"there", "here"}}), "alice", ""},
		{"another audience", withAudience, sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "aud": "there"}), "", invalid},
		{"no audience", withAudience, sign(t, jwt.SigningMethodHS256, secret(32), alice), "", invalid},
		{"nothing", bySecret, "", "", missing},
		{"no token at all", bySecret, "open sesame", "", invalid},
		{"too long", bySecret, strings.Repeat("a.", maxToken), "", invalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			provider, err := NewToken(test.options)
			if err != nil {
				t.Fatal(err)
			}
			proof, err := provider.Authenticate(now, Credentials{Data: []byte(test.token)})
			if test.role == "" {
				checkRefused(t, err, test.text)
				return
			}
			if err != nil || proof.Role != test.role {
				t.Errorf("got %+v, %v", proof, err)
			}
		})
	}
}

// checkRefused fails unless err tells the client exactly text.
func checkRefused(t *testing.T, err error, text string) {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || refused.Error() != text {
		t.Errorf("got %v, want a refusal %q", err, text)
	}
}

func TestTokenExpires(t *testing.T) {
	provider, err := NewToken(TokenOptions{SecretKey: dataURL(secret(32)), ClockSkew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	end := now.Add(time.Hour)
	text := sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice", "exp": end.Unix()})
	proof, err := provider.Authenticate(now, Credentials{Data: []byte(text)})
	if err != nil || !proof.Expires.Equal(end.Add(time.Second)) {
		t.Errorf("got %v, %v", proof, err)
	}
	text = sign(t, jwt.SigningMethodHS256, secret(32), jwt.MapClaims{"sub": "alice"})
	if proof, err = provider.Authenticate(now, Credentials{Data: []byte(text)}); err != nil || !proof.Expires.IsZero() {
		t.Errorf("without exp: %v, %v", proof, err)
	}
}

func TestTokenOptions(t *testing.T) {
	k := newKeys(t)
	der := publicDER(t, &k.rsa.PublicKey)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, secret(32), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		options TokenOptions
		fault   string // part of it; empty: none
	}{
		{"a file URL", TokenOptions{SecretKey: "file://" + file}, ""},
		{"a path", TokenOptions{SecretKey: file}, ""},
		{"base64", TokenOptions{SecretKey: base64.StdEncoding.EncodeToString(secret(32))}, ""},
		{"base64 for URLs", TokenOptions{SecretKey: base64.URLEncoding.EncodeToString([]byte(strings.Repeat("\xff\xfe", 20)))}, ""},
		{"data with a type", TokenOptions{SecretKey: "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(secret(32))}, ""},
		{"plain data", TokenOptions{SecretKey: "data:," + string(secret(40))}, ""},
		{"PEM", TokenOptions{PublicKey: dataURL(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}, ""},
		{"another algorithm of the same kind", TokenOptions{PublicKey: dataURL(der), PublicAlg: "PS512"}, ""},
		{"no key", TokenOptions{}, "one of them is needed"},
		{"short secret", TokenOptions{SecretKey: dataURL(secret(31))}, "31 bytes, HS256 needs 32"},
		{"no such file", TokenOptions{SecretKey: "file:///nowhere/key"}, "tokenSecretKey: read"},
		{"neither file nor base64", TokenOptions{SecretKey: "/no where/key"}, "neither a data: or file: URL"},
		{"data that is no base64", TokenOptions{SecretKey: "data:;base64,***"}, "not base64"},
		{"no key in DER", TokenOptions{PublicKey: dataURL([]byte("x"))}, "neither DER nor PEM"},
		{"ES with an RSA key", TokenOptions{PublicKey: dataURL(der), PublicAlg: "ES256"}, "tokenPublicAlg=ES256 does not go"},
		{"RS with an EC key", TokenOptions{PublicKey: dataURL(publicDER(t, &k.ec.PublicKey))}, "tokenPublicAlg=RS256 does not go"},
		{"audience claim alone", TokenOptions{SecretKey: dataURL(secret(32)), AudienceClaim: "aud"}, "tokenAudience must say"},
	} {
		_, err := NewToken(test.options)
		if test.fault == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && strings.Contains(err.Error(), string(secret(8))) {
			t.Errorf("%s: the key is shown: %v", test.name, err)
		}
	}
}

// Whatever is sent as a token, it is a role that somebody with the key signed, or refused.
func FuzzToken(f *testing.F) {
	provider, err := NewToken(TokenOptions{SecretKey: dataURL(secret(32))})
	if err != nil {
		f.Fatal(err)
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice"}).SignedString(secret(32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(text))
	f.Add([]byte("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."))
	f.Fuzz(func(t *testing.T, data []byte) {
		proof, err := provider.Authenticate(now, Credentials{Data: data})
		var refused *Refused
		if err != nil && !errors.As(err, &refused) || err == nil && (proof.Role != "alice" || !strings.HasPrefix(strings.TrimSpace(string(data)), text[:20])) {
			t.Errorf("got %v, %v", proof, err)
		}
	})
}
