package peer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
)

// greetingHeader has the greeting of an instance in requests of HTTP.
const greetingHeader = "X-Pulsar-Tc-Instance"

// WebRequest is a request of HTTP to another instance.
type WebRequest struct {
	Method string
	// Target is what follows host and port, escaped: path and query.
	Target      string
	ContentType string // of Body; empty: none is told
	Body        string
}

// maxWebAnswer bounds the body of an answer.
const maxWebAnswer = 64 << 20

// Web sends a request to another instance in the name of caller, and returns the status and the body of its answer.
// Errors: an answer that did not come; whether anything was done is unknown then.
func (p *Pool) Web(ctx context.Context, to cluster.Instance, caller cnx.Caller, request WebRequest) (status int, body []byte, err error) {
	status, body, err = p.web(ctx, to, caller, request)
	if err != nil {
		err = fmt.Errorf("ask instance %s: %w", to.ID, err)
	}
	return status, body, err
}

func (p *Pool) web(ctx context.Context, to cluster.Instance, caller cnx.Caller, request WebRequest) (status int, body []byte, err error) {
	base := to.WebURL
	if p.options.TLS {
		base = to.WebURLTLS
	}
	if base == "" {
		return 0, nil, fmt.Errorf("it has no port for HTTP (brokerClientTlsEnabled is %t)", p.options.TLS)
	}
	sent, err := http.NewRequestWithContext(ctx, request.Method, base+request.Target, strings.NewReader(request.Body))
	if err != nil {
		return 0, nil, err
	}
	greeting, err := p.options.Secret.greet(p.options.Self, to.ID, caller)
	if err != nil {
		return 0, nil, err
	}
	sent.Header.Set(greetingHeader, greeting)
	if request.ContentType != "" {
		sent.Header.Set("Content-Type", request.ContentType)
	}
	client, err := p.webClient()
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
	answer, err := client.Do(sent)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxWebAnswer+1))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && len(body) > maxWebAnswer {
		err = fmt.Errorf("its answer has more than %d bytes", maxWebAnswer)
	}
	return answer.StatusCode, body, err
}

// webClient has connections of its own, which end with the request: administrators ask seldom, and files of TLS may have changed.
func (p *Pool) webClient() (*http.Client, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if p.options.TLS {
		config, err := p.tlsConfig()
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = config
	}
	return &http.Client{
		Transport: transport,
		// An instance that sends on to a third one does not serve what it was asked about.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// AdmitRequest is Admit for HTTP.
func (d Door) AdmitRequest(r *http.Request) (caller cnx.Caller, instance bool, err error) {
	text := r.Header.Get(greetingHeader)
	if text == "" {
		return cnx.Caller{}, false, nil
	}
	return d.admit(text)
}
