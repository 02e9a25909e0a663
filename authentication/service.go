package authentication

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Options say who is let in, and who may speak for others.
type Options struct {
	Providers []Provider
	// AnonymousRole is the role of clients without credentials. Empty: they are refused.
	AnonymousRole string
	// ProxyRoles must name the principal that they speak for.
	ProxyRoles []string
	// SuperUserRoles give a Caller its Super. Empty where nobody checks rights.
	SuperUserRoles []string
	// AuthenticateOriginal demands the credentials of whom a proxy speaks for, not only the name.
	// Source: broker.conf authenticateOriginalAuthData.
	AuthenticateOriginal bool
}

// Service authenticates clients. It is the Authenticator of package conn. Errors of its methods: *Refused.
type Service struct {
	options Options
	now     func() time.Time
}

// New returns a Service.
func New(options Options) *Service { return &Service{options: options, now: time.Now} }

// Login authenticates the client of a new connection. certificates are those of its TLS handshake, verified or not.
func (s *Service) Login(certificates []*x509.Certificate, cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	own, err := s.prove(cmd.GetAuthMethodName(), Credentials{cmd.GetAuthData(), certificates})
	if err != nil {
		return cnx.Identity{}, err
	}
	if !slices.Contains(s.options.ProxyRoles, own.Role) {
		if cmd.GetOriginalPrincipal() != "" {
			return cnx.Identity{}, refuseInvalid("%q is no proxy role and must not name an original principal", own.Role)
		}
		return cnx.Identity{Caller: s.caller(own.Role, ""), Expires: own.Expires, Method: refreshable(cmd.GetAuthMethodName())}, nil
	}
	return s.behindProxy(own, cmd)
}

// behindProxy authenticates the client that a proxy speaks for. Unless the client's own credentials came along, the proxy's
// are what ends, and nobody can bring them anew on this connection.
//
// Source: ServerCnx.refreshAuthenticationCredentials.
func (s *Service) behindProxy(proxy Proof, cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	if !s.options.AuthenticateOriginal {
		original := cmd.GetOriginalPrincipal()
		if err := s.checkOriginal(proxy.Role, original); err != nil {
			return cnx.Identity{}, err
		}
		return cnx.Identity{Caller: s.caller(original, proxy.Role), Expires: proxy.Expires}, nil
	}
	method := cmd.GetOriginalAuthMethod()
	original, err := s.prove(method, Credentials{Data: []byte(cmd.GetOriginalAuthData())})
	if err != nil {
		return cnx.Identity{}, err
	}
	if named := cmd.GetOriginalPrincipal(); named != "" && named != original.Role {
		return cnx.Identity{}, refuseInvalid("original principal %q with the credentials of %q", named, original.Role)
	}
	if err := s.checkOriginal(proxy.Role, original.Role); err != nil {
		return cnx.Identity{}, err
	}
	return cnx.Identity{Caller: s.caller(original.Role, proxy.Role), Expires: original.Expires, Method: refreshable(method)}, nil
}

// refreshable is method, or nothing if its credentials belong to the TLS handshake.
func refreshable(method string) string {
	if method == methodTLS {
		return ""
	}
	return method
}

// checkOriginal judges the principal that a proxy speaks for.
//
// Source: AuthenticationService.isValidOriginalPrincipal.
func (s *Service) checkOriginal(proxy, original string) error {
	switch {
	case original == "":
		return refuseInvalid("proxy role %q names no original principal", proxy)
	case slices.Contains(s.options.ProxyRoles, original):
		return refuseInvalid("original principal %q of %q is a proxy role, too", original, proxy)
	}
	return nil
}

// Refresh checks the answer to AUTH_CHALLENGE: fresh credentials of the same kind, for the same role.
func (s *Service) Refresh(identity cnx.Identity, certificates []*x509.Certificate, data *pulsarproto.AuthData) (cnx.Identity, error) {
	if method := data.GetAuthMethodName(); method != identity.Method {
		return cnx.Identity{}, refuseInvalid("refreshed by %q, %q is expected", method, identity.Method)
	}
	provider := s.provider(identity.Method)
	if provider == nil {
		return cnx.Identity{}, refuseInvalid("credentials of %q cannot be refreshed", identity.Caller.Role)
	}
	proof, err := provider.Authenticate(s.now(), Credentials{data.GetAuthData(), certificates})
	if err != nil {
		return cnx.Identity{}, err
	}
	if proof.Role != identity.Caller.Role {
		return cnx.Identity{}, refuseInvalid("the role changed from %q to %q", identity.Caller.Role, proof.Role)
	}
	identity.Expires = proof.Expires
	return identity, nil
}

// prove asks the provider of method; a method that is not configured gets the anonymous role.
func (s *Service) prove(method string, credentials Credentials) (Proof, error) {
	provider := s.provider(method)
	if provider == nil {
		return s.anonymous(method)
	}
	return provider.Authenticate(s.now(), credentials)
}

func (s *Service) anonymous(method string) (Proof, error) {
	if s.options.AnonymousRole != "" {
		return Proof{Role: s.options.AnonymousRole}, nil
	}
	cause := errors.New("no credentials, and there is no anonymous role")
	if method != "" && method != "none" {
		cause = fmt.Errorf("method %q is not configured, and there is no anonymous role", method)
	}
	return Proof{}, &Refused{Text: missing, Cause: cause}
}

func (s *Service) provider(method string) Provider {
	for _, provider := range s.options.Providers {
		if provider.Method() == method {
			return provider
		}
	}
	return nil
}

// caller is who acts as role, through proxy unless that is empty.
func (s *Service) caller(role, proxy string) cnx.Caller {
	super := slices.Contains(s.options.SuperUserRoles, role) && (proxy == "" || slices.Contains(s.options.SuperUserRoles, proxy))
	return cnx.Caller{Role: role, Proxy: proxy, Known: true, Super: super}
}
