package authentication

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TokenOptions say which tokens prove what.
type TokenOptions struct {
	// SecretKey is the key of HMAC signatures: a data: or file: URL, the path of a file, or base64. It wins over PublicKey.
	SecretKey string
	// PublicKey is the key of RSA or ECDSA signatures, in the same forms, as DER or PEM.
	PublicKey string
	// PublicAlg tells what kind of key PublicKey is: an algorithm of RS, PS or ES. Empty: RS256.
	PublicAlg string
	// AuthClaim names the claim that holds the role, a string or a list whose first string counts. Empty: sub.
	AuthClaim string
	// AudienceClaim names a claim that must be Audience or a list with it. Empty: no claim is asked for.
	AudienceClaim, Audience string
	// ClockSkew is by how much the issuer's clock may differ.
	ClockSkew time.Duration
}

// Token proves the role that a JSON Web Token names. Its expiry and start are kept, whoever forgets to ask for them.
type Token struct {
	options TokenOptions
	key     any
	parser  func(now time.Time) *jwt.Parser
}

// maxToken bounds what is parsed; issuers stay below the 8 KiB that HTTP headers may have.
const maxToken = 64 << 10

// NewToken returns a provider, or says which option is at fault.
func NewToken(options TokenOptions) (*Token, error) {
	key, algorithms, err := options.key()
	if err != nil {
		return nil, err
	}
	if options.AuthClaim == "" {
		options.AuthClaim = "sub"
	}
	if options.AudienceClaim != "" && options.Audience == "" {
		return nil, fmt.Errorf("tokenAudienceClaim=%q: tokenAudience must say what it has to hold", options.AudienceClaim)
	}
	parser := func(now time.Time) *jwt.Parser {
		return jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithLeeway(options.ClockSkew),
			jwt.WithTimeFunc(func() time.Time { return now }))
	}
	return &Token{options: options, key: key, parser: parser}, nil
}

// Method implements Provider.
func (*Token) Method() string { return methodToken }

// Authenticate implements Provider. The data are the token.
//
// Source: AuthenticationProviderToken.authenticateToken, getPrincipal.
func (t *Token) Authenticate(now time.Time, credentials Credentials) (Proof, error) {
	if len(credentials.Data) > maxToken {
		return Proof{}, refuseInvalid("a token of %d bytes, at most %d are read", len(credentials.Data), maxToken)
	}
	text := strings.TrimSpace(string(credentials.Data))
	if text == "" {
		return Proof{}, &Refused{Text: missing, Cause: errors.New("the token is empty")}
	}
	claims := jwt.MapClaims{}
	_, err := t.parser(now).ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return t.key, nil })
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrTokenExpired):
		return Proof{}, &Refused{Text: expired, Cause: err}
	default:
		return Proof{}, &Refused{Text: invalid, Cause: err}
	}
	if t.options.AudienceClaim != "" && !slices.Contains(texts(claims[t.options.AudienceClaim]), t.options.Audience) {
		return Proof{}, refuseInvalid("claim %s is not %q", t.options.AudienceClaim, t.options.Audience)
	}
	return t.proof(claims)
}

func (t *Token) proof(claims jwt.MapClaims) (Proof, error) {
	roles := texts(claims[t.options.AuthClaim])
	if len(roles) == 0 || roles[0] == "" {
		return Proof{}, refuseInvalid("claim %s names no role", t.options.AuthClaim)
	}
	proof := Proof{Role: roles[0]}
	end, err := claims.GetExpirationTime()
	if err != nil {
		return Proof{}, refuseInvalid("claim exp: %w", err)
	}
	if end != nil {
		proof.Expires = end.Add(t.options.ClockSkew)
	} else if _, given := claims["exp"]; given { // the library takes 0 for no claim
		return Proof{}, &Refused{Text: expired, Cause: errors.New("claim exp is 0")}
	}
	return proof, nil
}

// texts are the strings of a claim that is a string or a list.
func texts(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		var all []string
		for _, element := range claim {
			if text, ok := element.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}
