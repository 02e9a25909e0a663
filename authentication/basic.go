package authentication

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/tg123/go-htpasswd"
)

// Basic proves the name that belongs to a password.
type Basic struct {
	users *htpasswd.File
	turns chan struct{} // a token for each password being hashed: whoever guesses takes half of the processors at most
}

// hashes are the encodings of passwords that are taken: those of Pulsar that are still fit for it, and bcrypt. Plain text and
// DES are not.
var hashes = []htpasswd.PasswdParser{
	htpasswd.AcceptMd5, htpasswd.AcceptSha, htpasswd.AcceptSsha, htpasswd.AcceptBcrypt, htpasswd.AcceptCryptSha,
}

// NewBasic reads users. source is an htpasswd file (its path, or a file: URL) or the content of one (a data: URL, or base64).
//
// Source: broker.conf basicAuthConf; AuthenticationProviderBasic.initialize.
func NewBasic(source string) (*Basic, error) {
	content, err := readContent(source)
	if err != nil {
		return nil, fmt.Errorf("htpasswd: %w", err)
	}
	var lines []string
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !readable(line) {
			return nil, fmt.Errorf("htpasswd: line %d: want name:hash, by bcrypt, MD5, SHA-1, SHA-256 or SHA-512", i+1)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, errors.New("htpasswd: it names nobody")
	}
	users, err := htpasswd.NewFromReader(strings.NewReader(strings.Join(lines, "\n")), hashes, nil)
	if err != nil {
		return nil, fmt.Errorf("htpasswd: %w", err)
	}
	return &Basic{users: users, turns: make(chan struct{}, max(1, runtime.NumCPU()/2))}, nil
}

// readable reports that line is a user. The library's own complaints would show the hash.
func readable(line string) bool {
	faults := 0
	_, err := htpasswd.NewFromReader(strings.NewReader(line), hashes, func(error) { faults++ })
	return err == nil && faults == 0 && !strings.HasPrefix(line, ":")
}

// Method implements Provider.
func (*Basic) Method() string { return methodBasic }

// Authenticate implements Provider. The data are name:password.
func (b *Basic) Authenticate(_ time.Time, credentials Credentials) (Proof, error) {
	name, password, ok := bytes.Cut(credentials.Data, []byte(":"))
	if !ok {
		return Proof{}, refuseInvalid("no colon between name and password")
	}
	b.turns <- struct{}{}
	defer func() { <-b.turns }()
	if !b.users.Match(string(name), string(password)) {
		return Proof{}, refuseInvalid("no such user, or another password")
	}
	return Proof{Role: string(name)}, nil
}
