package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

// credentials are what the commands on transactions show to the server, and whom they take for it.
type credentials struct {
	tokenFile string
	trustFile string
}

func (c *credentials) bind(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.tokenFile, "token-file", "", "file with the JSON Web Token to show")
	cmd.PersistentFlags().StringVar(&c.trustFile, "tls-trust-certs", "", "authorities that the server's certificate is checked against, PEM (default those of the system)")
}

// token is empty where none is to be shown.
func (c *credentials) token() (string, error) {
	if c.tokenFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

func (c *credentials) tls() (*tls.Config, error) {
	if c.trustFile == "" {
		return &tls.Config{}, nil
	}
	content, err := os.ReadFile(c.trustFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-trust-certs: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("--tls-trust-certs %s: holds no certificate in PEM", c.trustFile)
	}
	return &tls.Config{RootCAs: authorities}, nil
}

// dialer connects to serviceURL: with TLS if that begins with pulsar+ssl.
func (c *credentials) dialer(serviceURL string) (wireclient.Dialer, error) {
	token, err := c.token()
	if err != nil || !strings.HasPrefix(serviceURL, "pulsar+ssl:") {
		return wireclient.Dialer{Token: token}, err
	}
	config, err := c.tls()
	return wireclient.Dialer{TLS: config, Token: token}, err
}

// do sends a request to the web service. The caller closes the body of the answer.
func (c *credentials) do(request *http.Request) (*http.Response, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true}}
	return client.Do(request)
}
