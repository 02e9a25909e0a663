package pulsaradmin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// maxBody bounds a request body: a schema, or policies with the permissions of many roles.
const maxBody = 1 << 20

// maxRequests is how many requests are answered at once. Source: broker.conf maxConcurrentHttpRequests.
const maxRequests = 1024

// maxLarge is how many answers that may have many MiB, messages and schemas, are made or sent at once. The others wait.
const maxLarge = 8

// Options say what is administered.
type Options struct {
	Resources    *resources.Resources
	Topics       Topics
	Schemas      Schemas
	Transactions Transactions
	Broker       Broker
	// Instances are the processes that share the store with this one. Nil: there are no others.
	Instances Instances
	// BrokerPolicies are what holds for topics where nothing else is said, by member of the policies.
	BrokerPolicies map[string]any
	// Authenticate tells who sends a request; an error is answered 401. Nil: nobody in particular.
	Authenticate func(*http.Request) (cnx.Caller, error)
	// Rights decide what a caller may do. Nil: everything.
	Rights *authorization.Authorizer
	Log    zerolog.Logger
}

type handler struct {
	Options
	mux      *http.ServeMux
	patterns []string // of mux
	tokens   chan struct{}
	large    chan struct{} // a token for each large answer
}

// New returns the handler of the paths in the package comment.
func New(options Options) http.Handler { return newHandler(options) }

func newHandler(options Options) *handler {
	h := &handler{
		Options: options, mux: http.NewServeMux(), tokens: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge),
	}
	h.routeTenants()
	h.routeClusters()
	h.routeNamespaces()
	h.routePermissions()
	h.routeBacklogQuotas()
	for _, domain := range []string{"persistent", "non-persistent"} {
		h.routeTopics(domain)
		h.routeSubscriptions(domain)
		h.routeTopicPolicies(domain)
		h.routeTopicPermissions(domain)
	}
	h.routeSchemas()
	h.routeBrokers()
	h.routeTransactions()
	h.routeLookup()
	return h
}

// call is one request.
type call struct {
	*http.Request
	h        *handler
	caller   cnx.Caller
	instance bool      // another instance passed it on
	body     io.Reader // bounded
	given    []byte    // of the body, as far as it was read
	large    bool      // it has a token of h.large
}

// large makes answer wait until a large answer may be made. Whoever has no right to it does not come so far.
func large(answer func(*call, topicname.Name) (any, error)) func(*call, topicname.Name) (any, error) {
	return func(c *call, name topicname.Name) (any, error) {
		if err := c.takeLarge(); err != nil {
			return nil, err
		}
		return answer(c, name)
	}
}

// takeLarge returns with a token of h.large.
func (c *call) takeLarge() error {
	ctx, cancel := c.within()
	defer cancel()
	select {
	case c.h.large <- struct{}{}:
		c.large = true
		return nil
	case <-ctx.Done():
		return errTooManyLarge
	}
}

// end gives back what the call has when it is answered.
func (c *call) end() {
	if c.large {
		<-c.h.large
	}
}

// route makes answer serve a pattern of http.ServeMux. A nil value is answered 204, a *reply as it is, everything else as JSON.
func (h *handler) route(pattern string, answer func(*call) (any, error)) {
	h.patterns = append(h.patterns, pattern)
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, h: h, body: http.MaxBytesReader(w, r.Body, maxBody)}
		defer c.end()
		value, err := h.ask(c, answer)
		if owner, elsewhere := h.elsewhere(err); elsewhere {
			h.redirect(w, r, owner)
			return
		}
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		h.send(w, value)
	})
}

func (h *handler) ask(c *call, answer func(*call) (any, error)) (any, error) {
	if h.Instances != nil {
		caller, is, err := h.Instances.AdmitRequest(c.Request)
		if err != nil {
			return nil, &refusal{http.StatusUnauthorized, err.Error()}
		}
		c.caller, c.instance = caller, is
	}
	if h.Authenticate != nil && !c.instance {
		caller, err := h.Authenticate(c.Request)
		if err != nil {
			return nil, &refusal{http.StatusUnauthorized, err.Error()}
		}
		c.caller = caller
	}
	return answer(c)
}

var errTooManyLarge = &refusal{http.StatusServiceUnavailable, "too many messages and schemas are being read already, try again"}

var errTooManyRequests = &refusal{http.StatusServiceUnavailable, fmt.Sprintf("%d requests are being answered already, try again", maxRequests)}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.tokens <- struct{}{}:
		defer func() { <-h.tokens }()
	default:
		h.refuse(w, r, errTooManyRequests)
		return
	}
	defer func() {
		reason := recover()
		switch reason {
		case nil:
		case http.ErrAbortHandler:
			panic(reason)
		default:
			h.Log.Error().Interface("panic", reason).Bytes("stack", debug.Stack()).Str("path", r.URL.Path).Msg("a request failed")
			h.refuse(w, r, errors.New("internal error"))
		}
	}()
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.refuse(w, r, h.unrouted(r))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// unrouted tells a path that does not exist from a method that it does not have.
func (h *handler) unrouted(r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "" {
			return &refusal{http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed"}
		}
	}
	return &refusal{http.StatusNotFound, "HTTP 404 Not Found"}
}

// read decodes the body into value and reports whether there was one that is not null.
func (c *call) read(value any) (given bool, err error) {
	text, err := c.text()
	if err != nil || len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return false, err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return false, badBody(err)
	}
	return true, nil
}

// need is read for a body that must be there.
func (c *call) need(value any) error {
	given, err := c.read(value)
	if err == nil && !given {
		err = badBody(errors.New("it is empty"))
	}
	return err
}

func (c *call) text() ([]byte, error) {
	text, err := io.ReadAll(c.body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("request body: at most %d bytes are read", maxBody)}
	}
	c.given = text
	return bytes.TrimSpace(text), err
}

// flag reads a query parameter that is true or false; absent is false.
func (c *call) flag(name string) bool { return strings.EqualFold(c.URL.Query().Get(name), "true") }

// within bounds what a handler does by the request and by how long Pulsar lets an admin call take.
func (c *call) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), requestTimeout)
}
