package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/authentication"
	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/certificate"
	"github.com/pulsar-tc/pulsar-tc/conf"
)

// openSecurity reads certificates and keys. It comes before the ports, so that nobody is ever served without them.
func (s *Server) openSecurity(context.Context, context.Context) (err error) {
	c := s.options.Config
	if c.BrokerServicePortTLS >= 0 || c.WebServicePortTLS >= 0 {
		if s.certificates, err = certificate.Open(s.options.certificates()); err != nil {
			return err
		}
	}
	if !c.AuthenticationEnabled {
		return nil
	}
	providers, err := s.providers()
	if err != nil {
		return err
	}
	options := authentication.Options{
		Providers:            providers,
		AnonymousRole:        c.AnonymousUserRole,
		ProxyRoles:           conf.List(c.ProxyRoles),
		AuthenticateOriginal: c.AuthenticateOriginalAuthData,
	}
	if c.AuthorizationEnabled { // without it a foreign transaction is refused to super users, too
		options.SuperUserRoles = conf.List(c.SuperUserRoles)
	}
	s.authentication = authentication.New(options)
	return nil
}

func (s *Server) providers() ([]authentication.Provider, error) {
	c := s.options.Config
	var all []authentication.Provider
	for _, name := range conf.Providers(c.AuthenticationProviders) {
		provider, err := s.provider(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, provider)
	}
	return all, nil
}

func (s *Server) provider(name string) (authentication.Provider, error) {
	c := s.options.Config
	switch name {
	case conf.ProviderToken:
		return authentication.NewToken(authentication.TokenOptions{
			SecretKey:     c.TokenSecretKey,
			PublicKey:     c.TokenPublicKey,
			PublicAlg:     c.TokenPublicAlg,
			AuthClaim:     c.TokenAuthClaim,
			AudienceClaim: c.TokenAudienceClaim,
			Audience:      c.TokenAudience,
			ClockSkew:     c.TokenAllowedClockSkew,
		})
	case conf.ProviderBasic:
		basic, err := authentication.NewBasic(c.BasicAuthConf)
		if err != nil {
			return nil, fmt.Errorf("basicAuthConf: %w", err)
		}
		return basic, nil
	case conf.ProviderTLS:
		if s.certificates == nil {
			return nil, errors.New("no client can show a certificate: neither brokerServicePortTls nor webServicePortTls is set")
		}
		return authentication.NewCertificate(s.certificates.Verify), nil
	}
	return nil, errors.New("there is no such provider")
}

// openRights joins the stored policies with the settings.
func (s *Server) openRights(context.Context, context.Context) error {
	c := s.options.Config
	if c.AuthorizationEnabled {
		s.authorization = authorization.New(authorization.Options{
			SuperUserRoles: conf.List(c.SuperUserRoles),
			Wildcards:      c.AuthorizationAllowWildcardsMatching,
		}, s.resources)
	}
	return nil
}

// rightsChanged notes that somebody may have lost a right.
func (s *Server) rightsChanged() {
	select {
	case s.newRights <- struct{}{}:
	default:
	}
}

// followRights disconnects producers and consumers that have lost their right, until run is done.
func (s *Server) followRights(run context.Context) {
	for {
		select {
		case <-s.newRights:
			s.connections.CheckRights(run)
		case <-run.Done():
			return
		}
	}
}

// operatorsOnly guards the pages of this product: transactions are for super users (TC-27), metrics for whoever the settings
// say, health for everybody.
func (s *Server) operatorsOnly(next http.Handler) http.Handler {
	if s.authentication == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" || r.URL.Path == "/metrics" && !s.options.Config.AuthenticateMetricsEndpoint {
			next.ServeHTTP(w, r)
			return
		}
		caller, err := s.authentication.Request(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			admin.Refuse(w, http.StatusUnauthorized, err)
			return
		}
		if s.authorization != nil && r.URL.Path != "/metrics" {
			if err := s.authorization.Super(caller, "transactions"); err != nil {
				admin.Refuse(w, http.StatusForbidden, err)
				return
			}
		}
		next.ServeHTTP(w, admin.WithRole(r, caller.Role))
	})
}
