package tokentest

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var secret = []byte(strings.Repeat("k", 32))

// Setting makes a server accept the tokens.
func Setting() string {
	return "tokenSecretKey=data:;base64," + base64.StdEncoding.EncodeToString(secret)
}

// Sign returns a token of a role that is valid until a time.
func Sign(t testing.TB, role string, until time.Time) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": role, "exp": until.Unix()}).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
