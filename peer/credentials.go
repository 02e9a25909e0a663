package peer

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Credentials are what this process shows to the authentication of other instances. The zero value is none.
type Credentials struct {
	method string // as auth_method_name spells it; empty: none
	// data returns auth_data; nil: there is none.
	data func() ([]byte, error)
	// certificateFile and keyFile are shown in TLS handshakes; empty: nothing is.
	certificateFile, keyFile string
}

// pluginPackage is where the classes are in Pulsar.
const pluginPackage = "org.apache.pulsar.client.impl.auth."

// ParseCredentials reads what broker.conf has as brokerClientAuthenticationPlugin and brokerClientAuthenticationParameters:
//
//	AuthenticationToken   token:<token>, file://<path>, or the token
//	AuthenticationTls     tlsCertFile:<path>,tlsKeyFile:<path>
//	AuthenticationBasic   {"userId":"<user>","password":"<password>"}
//
// with or without Pulsar's package before the class. An empty plugin, or AuthenticationDisabled, is none. Files are read at every
// connection. No error has a secret in it.
//
// Source: AuthenticationToken.configure, AuthenticationTls.configure, AuthenticationBasic.configure.
func ParseCredentials(plugin, parameters string) (Credentials, error) {
	switch strings.TrimPrefix(plugin, pluginPackage) {
	case "", "AuthenticationDisabled":
		return Credentials{}, nil
	case "AuthenticationToken":
		return tokenCredentials(parameters)
	case "AuthenticationTls":
		return certificateCredentials(parameters)
	case "AuthenticationBasic":
		return basicCredentials(parameters)
	}
	return Credentials{}, fmt.Errorf("brokerClientAuthenticationPlugin=%q: want AuthenticationToken, AuthenticationTls or AuthenticationBasic", plugin)
}

func badParameters(rule string) error {
	return errors.New("brokerClientAuthenticationParameters: " + rule)
}

func tokenCredentials(parameters string) (Credentials, error) {
	if path, isFile := strings.CutPrefix(parameters, "file:"); isFile {
		location, err := url.Parse(parameters)
		if err == nil && location.Path != "" {
			path = location.Path
		}
		return Credentials{method: "token", data: func() ([]byte, error) {
			token, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("brokerClientAuthenticationParameters: %w", err)
			}
			return bytes.TrimSpace(token), nil
		}}, nil
	}
	token := strings.TrimPrefix(parameters, "token:")
	if token == "" {
		return Credentials{}, badParameters("want token:<token> or file://<path>")
	}
	return Credentials{method: "token", data: func() ([]byte, error) { return []byte(token), nil }}, nil
}

func certificateCredentials(parameters string) (Credentials, error) {
	c := Credentials{method: "tls"}
	for pair := range strings.SplitSeq(parameters, ",") {
		key, path, _ := strings.Cut(strings.TrimSpace(pair), ":")
		switch key {
		case "tlsCertFile":
			c.certificateFile = path
		case "tlsKeyFile":
			c.keyFile = path
		}
	}
	if c.certificateFile == "" || c.keyFile == "" {
		return Credentials{}, badParameters("want tlsCertFile:<path>,tlsKeyFile:<path>")
	}
	return c, nil
}

func basicCredentials(parameters string) (Credentials, error) {
	var given struct {
		User     string `json:"userId"`
		Password string `json:"password"`
	}
	if err := json.Unmarshal([]byte(parameters), &given); err != nil || given.User == "" {
		return Credentials{}, badParameters(`want {"userId":"...","password":"..."}`)
	}
	text := []byte(given.User + ":" + given.Password)
	return Credentials{method: "basic", data: func() ([]byte, error) { return text, nil }}, nil
}

// None reports that nothing is shown.
func (c Credentials) None() bool { return c.method == "" }

// certificate returns what is shown in TLS handshakes, or nil.
func (c Credentials) certificate() (*tls.Certificate, error) {
	if c.certificateFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certificateFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("brokerClientAuthenticationParameters: %w", err)
	}
	return &pair, nil
}

// Certificates are those that are shown in TLS handshakes, the own one first; nil: none are.
func (c Credentials) Certificates() ([]*x509.Certificate, error) {
	pair, err := c.certificate()
	if err != nil || pair == nil {
		return nil, err
	}
	var all []*x509.Certificate
	for _, encoded := range pair.Certificate {
		certificate, err := x509.ParseCertificate(encoded)
		if err != nil {
			return nil, fmt.Errorf("brokerClientAuthenticationParameters: %w", err)
		}
		all = append(all, certificate)
	}
	return all, nil
}

// Connect returns CONNECT with the credentials, and no proof that it comes from an instance.
func (c Credentials) Connect(version string) (*pulsarproto.CommandConnect, error) {
	connect := &pulsarproto.CommandConnect{
		ClientVersion: proto.String(product + version), ProtocolVersion: proto.Int32(protocolVersion),
		FeatureFlags: &pulsarproto.FeatureFlags{SupportsAuthRefresh: proto.Bool(true)},
	}
	if c.None() {
		return connect, nil
	}
	connect.AuthMethodName = &c.method
	if c.data == nil {
		return connect, nil
	}
	data, err := c.data()
	connect.AuthData = data
	return connect, err
}
