package authentication

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cnx"
)

// originalPrincipal is the header in which a proxy names the client that it speaks for.
//
// Source: AuthenticationFilter, AuthenticationService of Pulsar.
const originalPrincipal = "X-Original-Principal"

// Request authenticates the client of an HTTP request: by its Authorization header (Bearer or Basic), else by the certificate
// of its connection, else as the anonymous role. A refusal is to be answered 401.
func (s *Service) Request(r *http.Request) (cnx.Caller, error) {
	own, err := s.proveRequest(r)
	if err != nil {
		return cnx.Caller{}, err
	}
	original := r.Header.Get(originalPrincipal)
	if slices.Contains(s.options.ProxyRoles, own.Role) {
		if err := s.checkOriginal(own.Role, original); err != nil {
			return cnx.Caller{}, err
		}
		return s.caller(original, own.Role), nil
	}
	if original != "" && original != own.Role {
		return cnx.Caller{}, refuseInvalid("%q is no proxy role and must not name an original principal", own.Role)
	}
	return s.caller(own.Role, ""), nil
}

func (s *Service) proveRequest(r *http.Request) (Proof, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		return s.proveHeader(header)
	}
	provider := s.provider(methodTLS)
	if provider == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return s.anonymous("")
	}
	return provider.Authenticate(s.now(), Credentials{Certificates: r.TLS.PeerCertificates})
}

func (s *Service) proveHeader(header string) (Proof, error) {
	scheme, value, _ := strings.Cut(header, " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer":
		return s.proveBy(methodToken, []byte(value))
	case "basic":
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return Proof{}, refuseInvalid("header Authorization: %w", err)
		}
		return s.proveBy(methodBasic, data)
	}
	return Proof{}, &Refused{Text: invalid, Cause: errors.New("header Authorization is neither Bearer nor Basic")}
}

// proveBy refuses what no provider can judge: who sent a header does not mean to be anonymous.
func (s *Service) proveBy(method string, data []byte) (Proof, error) {
	provider := s.provider(method)
	if provider == nil {
		return Proof{}, refuseInvalid("method %q is not configured", method)
	}
	return provider.Authenticate(s.now(), Credentials{Data: data})
}
