package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"
)

// settleTime is how long a server may take to close a connection that it does not like.
const settleTime = 500 * time.Millisecond

// unreachable says why an endpoint does not answer, by connecting to it once more: gRPC keeps that to itself. It returns nil if
// nothing is wrong with the connection.
func unreachable(ctx context.Context, endpoint string, config *tls.Config) error {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", parsed.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if config == nil {
		return refuses(conn, "it closes connections without TLS: does it want https://?")
	}
	config = config.Clone()
	config.ServerName = parsed.Hostname()
	config.NextProtos = []string{"h2"}
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return refuses(encrypted, "it closes connections of this certificate")
}

// preface opens a connection of HTTP/2, with empty settings. Source: RFC 9113 section 3.4.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// refuses returns an error if the server ends the connection instead of opening one of HTTP/2 itself.
func refuses(conn net.Conn, why string) error {
	if err := conn.SetDeadline(time.Now().Add(settleTime)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, preface); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	switch {
	case err == nil, errors.As(err, &timeout) && timeout.Timeout():
		return nil
	case errors.Is(err, io.EOF):
		return errors.New(why)
	}
	return err
}
