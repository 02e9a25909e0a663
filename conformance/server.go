package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

// The ports that the suite fixes.
const (
	binaryPort    = 6650
	binaryPortTLS = 6651
	webPort       = 8080
	webPortTLS    = 8443
)

// startServer starts a server with an empty store and the suite's configuration file, as its own start script starts Pulsar.
func startServer(ctx context.Context, binary, dir string, s suite) (*process.Server, error) {
	configuration, err := s.configure(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return nil, err
	}
	server, err := process.Start(ctx, process.Options{
		Binary: binary, DataDir: data, Port: binaryPort, WebPort: webPort, ConfigFile: configuration,
		Set: []string{
			"bindAddress=127.0.0.1",
			"basicAuthConf=" + s.file("conf", ".htpasswd"),
			// TestTxn_ImplCommitOrAbort wants TransactionNotFound for a repeated end.
			"transactionMetaPersistCount=0", "transactionMetaPersistUnnamedCount=0",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start the server: %w\n%s", err, strings.Join(server.Lines(), "\n"))
	}
	if err := s.provision(ctx); err != nil {
		err = errors.Join(err, server.Kill())
		return nil, fmt.Errorf("%w\n%s", err, strings.Join(server.Lines(), "\n"))
	}
	return server, nil
}

// configure writes the suite's configuration file with paths of this machine.
func (s suite) configure(dir string) (string, error) {
	text, err := os.ReadFile(s.file("conf", "standalone.conf"))
	if err != nil {
		return "", err
	}
	replaced := strings.NewReplacer(
		"file:///pulsar/tokens/", "file://"+s.file("tokens")+"/",
		"/pulsar/certs/", s.file("certs")+"/",
	).Replace(string(text))
	path := filepath.Join(dir, "standalone.conf")
	return path, os.WriteFile(path, []byte(replaced), 0o600)
}

// provision makes what the suite's start script makes. The roles and names are those of that script.
func (s suite) provision(ctx context.Context) error {
	client, err := s.adminClient()
	if err != nil {
		return err
	}
	const actions = `["produce","consume"]`
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPost, "tenants/public", `{"adminRoles":["anonymous"],"allowedClusters":["standalone"]}`},
		{http.MethodPost, "namespaces/public/default/permissions/anonymous", actions},
		{http.MethodPut, "tenants/private", `{"adminRoles":[],"allowedClusters":["standalone"]}`},
		{http.MethodPut, "namespaces/private/auth", ""},
		{http.MethodPost, "namespaces/private/auth/permissions/token-principal", actions},
	} {
		url := fmt.Sprintf("https://localhost:%d/admin/v2/%s", webPortTLS, call.path)
		request, err := http.NewRequestWithContext(ctx, call.method, url, bytes.NewBufferString(call.body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("%s %s: %w", call.method, url, err)
		}
		text, err := io.ReadAll(answer.Body)
		if err := answer.Body.Close(); err != nil {
			return fmt.Errorf("%s %s: %w", call.method, url, err)
		}
		if err != nil || answer.StatusCode/100 != 2 {
			return fmt.Errorf("%s %s: %s %s", call.method, url, answer.Status, text)
		}
	}
	return nil
}

// adminClient calls as role admin, a super-user, by the suite's client certificate.
func (s suite) adminClient() (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(s.file("certs", "client-cert.pem"), s.file("certs", "client-key.pem"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(s.file("certs", "cacert.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots}},
	}, nil
}
