package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"
)

// Store is the newest usable content of the files.
type Store struct {
	options Options
	current atomic.Pointer[material]
	turn    chan struct{} // held by whoever looks at the files; guards everything below
	checked time.Time
	fault   string // the last one that the log has told of
}

// Open reads the files, which must be usable.
func Open(options Options) (*Store, error) {
	if options.Require && options.TrustFile == "" {
		return nil, errors.New("tlsRequireTrustedClientCertOnConnect=true: tlsTrustCertsFilePath must name the authorities that are trusted")
	}
	content, err := options.read()
	if err != nil {
		return nil, err
	}
	m, err := options.parse(content)
	if err != nil {
		return nil, err
	}
	s := &Store{options: options, turn: make(chan struct{}, 1), checked: time.Now()}
	s.current.Store(m)
	return s, nil
}

// material returns what the files hold, looking at them if it is time to.
func (s *Store) material() *material {
	if s.takeTurn() {
		if time.Since(s.checked) >= s.options.RefreshCheck {
			s.refresh()
			s.checked = time.Now()
		}
		<-s.turn
	}
	return s.current.Load()
}

// takeTurn waits only where each connection is promised a look of its own.
func (s *Store) takeTurn() bool {
	if s.options.RefreshCheck <= 0 {
		s.turn <- struct{}{}
		return true
	}
	select {
	case s.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Store) refresh() {
	content, err := s.options.read()
	if err == nil && content.sum() == s.current.Load().sum {
		s.fault = ""
		return
	}
	var m *material
	if err == nil {
		m, err = s.options.parse(content)
	}
	if err != nil {
		if s.fault != err.Error() {
			s.fault = err.Error()
			s.options.Log.Warn().Err(err).Msg("new TLS files are not usable, the old ones stay")
		}
		return
	}
	s.fault = ""
	s.current.Store(m)
	s.options.Log.Info().Time("expires", m.pair.Leaf.NotAfter).Msg("TLS files read again")
}

// Verify reports whether a trusted authority stands behind a client's chain, its own certificate first.
func (s *Store) Verify(chain []*x509.Certificate) error {
	return s.material().verify(chain)
}

func (m *material) verify(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("no client certificate")
	}
	if m.trust == nil {
		return errors.New("tlsTrustCertsFilePath names no authorities")
	}
	options := x509.VerifyOptions{
		Roots: m.trust, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, between := range chain[1:] {
		options.Intermediates.AddCert(between)
	}
	_, err := chain[0].Verify(options)
	return err
}

// Config returns the TLS settings of a port with the given versions and cipher suites.
func (s *Store) Config(protocols Protocols) *tls.Config {
	base := &tls.Config{
		MinVersion:             protocols.Min,
		MaxVersion:             protocols.Max,
		CipherSuites:           protocols.Suites,
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequestClientCert,
	}
	if s.options.Require {
		base.ClientAuth = tls.RequireAnyClientCert
	}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m := s.material()
		config := base.Clone()
		config.GetConfigForClient = nil
		config.Certificates = []tls.Certificate{m.pair}
		config.ClientCAs = m.trust
		config.VerifyConnection = func(state tls.ConnectionState) error { return s.admit(m, state) }
		return config, nil
	}
	return base
}

// admit judges the certificate of a client, if it showed one.
func (s *Store) admit(m *material, state tls.ConnectionState) error {
	if s.options.AllowInsecure || len(state.PeerCertificates) == 0 {
		return nil
	}
	return m.verify(state.PeerCertificates)
}
