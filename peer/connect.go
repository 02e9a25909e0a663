package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// protocolVersion is what CONNECT announces. Source: PulsarApi.proto, ProtocolVersion v21.
const protocolVersion = 21

// product begins the server_version of every instance.
const product = "pulsar-tc "

// address is host:port of the port of an instance that this pool connects to.
func (p *Pool) address(to cluster.Instance) (string, error) {
	service, scheme := to.ServiceURL, "pulsar"
	if p.options.TLS {
		service, scheme = to.ServiceURLTLS, "pulsar+ssl"
	}
	if service == "" {
		return "", fmt.Errorf("it has no port for %s (brokerClientTlsEnabled is %t)", scheme, p.options.TLS)
	}
	parsed, err := url.Parse(service)
	if err != nil {
		return "", err
	}
	if parsed.Scheme != scheme || parsed.Port() == "" {
		return "", fmt.Errorf("its service URL is %q, want %s://host:port", service, scheme)
	}
	return parsed.Host, nil
}

// connect opens the connection and does the handshake.
func (l *link) connect() (net.Conn, *pulsarproto.FrameReader, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.pool.options.ConnectTimeout)
	defer cancel()
	socket, err := l.pool.dial(ctx, l.address)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() }) // the handshake then fails
	reader := newReader(socket)
	err = l.handshake(socket, reader)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = socket.Close() // the error before it says more
		return nil, nil, err
	}
	return socket, reader, nil
}

func (p *Pool) dial(ctx context.Context, address string) (net.Conn, error) {
	if !p.options.TLS {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", address)
	}
	config, err := p.tlsConfig()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
}

// tlsConfig reads the files at every connection, so that replaced ones count.
func (p *Pool) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.options.TrustFile != "" {
		authorities, err := os.ReadFile(p.options.TrustFile)
		if err != nil {
			return nil, fmt.Errorf("brokerClientTrustCertsFilePath: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("brokerClientTrustCertsFilePath: %s has no certificate", p.options.TrustFile)
		}
	}
	certificate, err := p.options.Credentials.certificate()
	if err != nil {
		return nil, err
	}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return config, nil
}

// handshake sends CONNECT and reads its answer.
func (l *link) handshake(socket net.Conn, reader *pulsarproto.FrameReader) error {
	frame, err := l.hello()
	if err != nil {
		return err
	}
	if err := l.write(socket, frame); err != nil {
		return err
	}
	if err := socket.SetReadDeadline(time.Now().Add(l.pool.options.ConnectTimeout)); err != nil {
		return err
	}
	answer, err := reader.ReadFrame()
	if err != nil {
		return err
	}
	var command pulsarproto.BaseCommand
	if err := pulsarproto.DecodeCommand(&command, answer.Command); err != nil {
		return err
	}
	switch command.GetType() {
	case pulsarproto.BaseCommand_CONNECTED:
		if version := command.GetConnected().GetServerVersion(); !strings.HasPrefix(version, product) {
			return fmt.Errorf("%.100q is no instance of this product", version)
		}
		return socket.SetReadDeadline(time.Time{})
	case pulsarproto.BaseCommand_ERROR:
		return errors.New(command.GetError().GetMessage())
	}
	return fmt.Errorf("CONNECT was answered %s", command.GetType())
}

// hello is CONNECT with the credentials and the proof of this process.
func (l *link) hello() ([]byte, error) {
	options := &l.pool.options
	connect, err := options.Credentials.Connect(options.Version)
	if err != nil {
		return nil, err
	}
	greeting, err := options.Secret.greet(options.Self, l.instance, l.caller)
	if err != nil {
		return nil, err
	}
	connect.OriginalAuthMethod, connect.OriginalAuthData = proto.String(greetingMethod), &greeting
	return pulsarproto.AppendCommand(nil, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: connect})
}

// authResponse is the answer to AUTH_CHALLENGE: the credentials as they are by now.
func (p *Pool) authResponse() ([]byte, error) {
	connect, err := p.options.Credentials.Connect(p.options.Version)
	if err != nil {
		return nil, err
	}
	return pulsarproto.AppendCommand(nil, &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_AUTH_RESPONSE.Enum(),
		AuthResponse: &pulsarproto.CommandAuthResponse{
			ClientVersion:   connect.ClientVersion,
			ProtocolVersion: connect.ProtocolVersion,
			Response:        &pulsarproto.AuthData{AuthMethodName: connect.AuthMethodName, AuthData: connect.AuthData},
		},
	})
}
