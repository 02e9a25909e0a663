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

// maxRedirects is how often a request is followed to another instance: leaders change seldom while one is asked.
const maxRedirects = 5

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

// do sends a request to the web service. The caller closes the body of the answer. An error of an instance that another one has sent
// the request to has what that one said of it.
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
	var sentOn error
	client := http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(next *http.Request, before []*http.Request) error {
			sentOn = failureOf(next.Response)
			return showAgain(token, next, before)
		},
	}
	answer, err := client.Do(request)
	if err != nil && sentOn != nil {
		return nil, fmt.Errorf("%w: %w", sentOn, err)
	}
	return answer, err
}

// showAgain lets a redirect to the instance that leads the coordinator show the token there, too: Go's client drops it where the name
// of the host changes. It goes nowhere in the clear that was asked for over TLS.
func showAgain(token string, next *http.Request, before []*http.Request) error {
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirected from https to %s", next.URL.Redacted())
	}
	if token != "" {
		next.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}
