package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/pulsar-tc/pulsar-tc/certificate"
	"github.com/pulsar-tc/pulsar-tc/conf"
)

// port is a listener and how clients get at it.
type port struct {
	net.Listener
	url string
}

// ports are those that settings turn on; the others are nil.
type ports struct{ binary, binaryTLS, web, webTLS *port }

// openPorts comes early, so that a port in use is told before anything is written.
func (s *Server) openPorts(context.Context, context.Context) error {
	c := s.options.Config
	if c.BrokerServicePort < 0 && c.BrokerServicePortTLS < 0 {
		return errors.New("brokerServicePort and brokerServicePortTls are both off: nobody could connect")
	}
	for _, wanted := range []struct {
		opened      **port
		key, scheme string
		number      int
		tls         func() (*tls.Config, error)
	}{
		{&s.ports.binary, "brokerServicePort", "pulsar", c.BrokerServicePort, nil},
		{&s.ports.binaryTLS, "brokerServicePortTls", "pulsar+ssl", c.BrokerServicePortTLS, s.binaryTLS},
		{&s.ports.web, "webServicePort", "http", c.WebServicePort, nil},
		{&s.ports.webTLS, "webServicePortTls", "https", c.WebServicePortTLS, s.webTLS},
	} {
		if wanted.number < 0 {
			continue
		}
		opened, err := s.openPort(wanted.key, wanted.scheme, wanted.number)
		if err != nil {
			return err
		}
		*wanted.opened = opened
		if wanted.tls == nil {
			continue
		}
		config, err := wanted.tls()
		if err != nil {
			return err
		}
		opened.Listener = tls.NewListener(opened.Listener, config)
	}
	return nil
}

func (s *Server) openPort(key, scheme string, number int) (*port, error) {
	listener, err := s.options.listen(key, number)
	if err != nil {
		return nil, err
	}
	s.onClose(func(context.Context) error { return ignoreClosed(listener.Close()) })
	address, err := s.options.advertised(listener)
	if err != nil {
		return nil, err
	}
	return &port{listener, scheme + "://" + address}, nil
}

func (s *Server) binaryTLS() (*tls.Config, error) {
	return s.tlsConfig("tlsProtocols", s.options.Config.TLSProtocols, "tlsCiphers", s.options.Config.TLSCiphers)
}

func (s *Server) webTLS() (*tls.Config, error) {
	c := s.options.Config
	return s.tlsConfig("webServiceTlsProtocols", c.WebServiceTLSProtocols, "webServiceTlsCiphers", c.WebServiceTLSCiphers)
}

func (s *Server) tlsConfig(protocolsKey, protocols, ciphersKey, ciphers string) (*tls.Config, error) {
	chosen, ignored, err := certificate.ParseProtocols(conf.List(protocols), conf.List(ciphers))
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", protocolsKey, ciphersKey, err)
	}
	if len(ignored) > 0 {
		s.options.Log.Warn().Str("key", ciphersKey).Strs("suites", ignored).Msg("cipher suites that are not served")
	}
	return s.certificates.Config(chosen), nil
}

// urlOf is how clients get at p; empty if it is off.
func urlOf(p *port) string {
	if p == nil {
		return ""
	}
	return p.url
}

// URLs are the advertised addresses of all ports that are on, those without TLS first.
func (s *Server) URLs() []string {
	var all []string
	for _, p := range []*port{s.ports.binary, s.ports.web, s.ports.binaryTLS, s.ports.webTLS} {
		if p != nil {
			all = append(all, p.url)
		}
	}
	return all
}

// ServiceURL is the address of the binary protocol, as advertised; empty if only TLS is on.
func (s *Server) ServiceURL() string { return urlOf(s.ports.binary) }

// ServiceURLTLS is the address of the binary protocol over TLS, as advertised; empty if it is off.
func (s *Server) ServiceURLTLS() string { return urlOf(s.ports.binaryTLS) }

// WebURL is the address of HTTP, as advertised; empty if it is off.
func (s *Server) WebURL() string { return urlOf(s.ports.web) }

// WebURLTLS is the address of HTTPS, as advertised; empty if it is off.
func (s *Server) WebURLTLS() string { return urlOf(s.ports.webTLS) }
