package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// handshake does the TLS handshake of a connection that came in on a TLS port. The handshake's deadline is that of CONNECT.
// Errors: *inputError, those of the network.
func (s *session) handshake() error {
	encrypted, ok := s.network.(*tls.Conn)
	if !ok {
		return nil
	}
	err := encrypted.HandshakeContext(s.ctx)
	var plain tls.RecordHeaderError
	switch {
	case err == nil:
		s.certificates = encrypted.ConnectionState().PeerCertificates
		return nil
	case errors.As(err, &plain):
		return &inputError{BadPlain, err}
	case errors.Is(err, io.EOF), s.ctx.Err() != nil, s.out.isStopped():
		return err
	}
	return &inputError{BadHandshake, err}
}

// closeNetwork closes a connection without a word: what says goodbye in TLS may block, see sayGoodbye.
func closeNetwork(network net.Conn) error {
	if encrypted, ok := network.(*tls.Conn); ok {
		return encrypted.NetConn().Close()
	}
	return network.Close()
}

// sayGoodbye tells a TLS client that everything was written. The writer calls it last; a client that does not read holds it
// up for the 5 s that crypto/tls gives an alert.
func (s *session) sayGoodbye() {
	encrypted, ok := s.network.(*tls.Conn)
	if !ok {
		return
	}
	if err := encrypted.CloseWrite(); err != nil {
		s.log.Debug().Err(err).Msg("close of TLS failed")
	}
}
