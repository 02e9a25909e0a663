package authentication

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// key returns the key that signatures are checked with and the algorithms that go with its kind: a public key never serves
// as the secret of an HMAC, and "none" is nobody's algorithm.
func (o *TokenOptions) key() (key any, algorithms []string, err error) {
	switch {
	case o.SecretKey != "":
		return o.secretKey()
	case o.PublicKey != "":
		return o.publicKey()
	}
	return nil, nil, errors.New("tokenSecretKey and tokenPublicKey: one of them is needed for tokens")
}

// secretKey reads the key of an HMAC. It must be as long as the hash is (RFC 7518, section 3.2), so a short one is fit for
// fewer algorithms.
func (o *TokenOptions) secretKey() (any, []string, error) {
	key, err := readContent(o.SecretKey)
	if err != nil {
		return nil, nil, fmt.Errorf("tokenSecretKey: %w", err)
	}
	var algorithms []string
	for _, hmac := range []struct {
		name  string
		bytes int
	}{{"HS256", 32}, {"HS384", 48}, {"HS512", 64}} {
		if len(key) >= hmac.bytes {
			algorithms = append(algorithms, hmac.name)
		}
	}
	if algorithms == nil {
		return nil, nil, fmt.Errorf("tokenSecretKey: a key of %d bytes, HS256 needs 32", len(key))
	}
	return key, algorithms, nil
}

func (o *TokenOptions) publicKey() (any, []string, error) {
	content, err := readContent(o.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("tokenPublicKey: %w", err)
	}
	if block, _ := pem.Decode(content); block != nil {
		content = block.Bytes
	}
	key, err := x509.ParsePKIXPublicKey(content)
	if err != nil {
		return nil, nil, fmt.Errorf("tokenPublicKey: neither DER nor PEM of a public key: %w", err)
	}
	algorithms, kind := publicAlgorithms(key)
	alg := o.PublicAlg
	if alg == "" {
		alg = "RS256" // source: AuthenticationProviderToken, the default of tokenPublicAlg
	}
	if kind == "" || !strings.Contains(kind, alg[:min(2, len(alg))]) {
		return nil, nil, fmt.Errorf("tokenPublicAlg=%s does not go with tokenPublicKey, a %T", alg, key)
	}
	return key, algorithms, nil
}

// publicAlgorithms are the algorithms of a key, and the first letters of their names.
func publicAlgorithms(key any) (algorithms []string, kind string) {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, "RS PS"
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []string{"ES256"}, "ES"
		case 384:
			return []string{"ES384"}, "ES"
		case 521:
			return []string{"ES512"}, "ES"
		}
	}
	return nil, ""
}
