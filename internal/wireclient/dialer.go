package wireclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
)

// Dialer says how to connect. The zero value connects in the clear and shows no credentials.
type Dialer struct {
	TLS   *tls.Config // nil: in the clear
	Token string      // JSON Web Token; empty: none is shown
}

func (d Dialer) socket(ctx context.Context, addr string) (net.Conn, error) {
	if d.TLS != nil {
		return (&tls.Dialer{Config: d.TLS}).DialContext(ctx, "tcp", addr)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", addr)
}

// Address returns host:port of a pulsar:// URL.
func Address(serviceURL string) (string, error) { return Dialer{}.address(serviceURL) }

// address returns host:port of a URL that the dialer can connect to: pulsar://, with TLS pulsar+ssl://.
func (d Dialer) address(serviceURL string) (string, error) {
	scheme, port := "pulsar", "6650"
	if d.TLS != nil {
		scheme, port = "pulsar+ssl", "6651"
	}
	u, err := url.Parse(serviceURL)
	if err != nil {
		return "", err
	}
	if u.Scheme != scheme || u.Host == "" {
		return "", fmt.Errorf("service URL %q: want %s://host:port", serviceURL, scheme)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), port), nil
	}
	return u.Host, nil
}
