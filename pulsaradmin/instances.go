package pulsaradmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Instances are the processes that share the store.
type Instances interface {
	// Instances are those that live, as far as this process knows.
	Instances() []cluster.Instance
	// Find returns one of them.
	Find(id string) (cluster.Instance, bool)
	// Owner is the instance that serves a topic, or is to serve it. Errors: txn.ErrNotReady.
	Owner(ctx context.Context, name topicname.Name) (cluster.Instance, error)
	// AdmitRequest returns the caller of a request that another instance passed on. An error refuses one that only says so.
	AdmitRequest(r *http.Request) (caller cnx.Caller, instance bool, err error)
	// Web passes a request on.
	Web(ctx context.Context, to cluster.Instance, caller cnx.Caller, request peer.WebRequest) (status int, body []byte, err error)
}

// elsewhere returns the instance that serves the topic or leads the coordinator, if err says that another one does.
func (h *handler) elsewhere(err error) (owner cluster.Instance, elsewhere bool) {
	var led *LedElsewhereError
	if errors.As(err, &led) {
		return led.Leader, true
	}
	var served *topic.NotOwnerError
	if h.Instances == nil || !errors.As(err, &served) {
		return cluster.Instance{}, false
	}
	return h.Instances.Find(served.Owner)
}

// redirect sends a client to the instance that serves what it asks about.
//
// Source: PulsarWebResource.validateTopicOwnership answers 307.
func (h *handler) redirect(w http.ResponseWriter, r *http.Request, to cluster.Instance) {
	base := to.WebURL
	if (r.TLS != nil || base == "") && to.WebURLTLS != "" {
		base = to.WebURLTLS
	}
	if base == "" {
		h.refuse(w, r, fmt.Errorf("%w: instance %s serves that and has no port for HTTP", txn.ErrNotReady, to.ID))
		return
	}
	w.Header().Set("Location", base+r.URL.RequestURI())
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// orThere passes on what concerns one of several topics and ended in err because another instance serves that topic. below is what
// follows the topic in the path there, with the same method, query and body; into, if it is not nil, takes the answer.
func (c *call) orThere(ctx context.Context, name topicname.Name, err error, below string, into any) error {
	owner, elsewhere := c.h.elsewhere(err)
	if !elsewhere || c.instance || name.Local == c.topicValue() { // then the client is sent there
		return err
	}
	return c.there(ctx, owner, c.Method, name, below, into)
}

// there asks another instance about a topic. Errors: *thereError; txn.ErrNotReady where nothing is known of the answer.
func (c *call) there(ctx context.Context, owner cluster.Instance, method string, name topicname.Name, below string, into any) error {
	target := "/admin/v2/" + name.Domain + "/" + url.PathEscape(name.Tenant) + "/" + url.PathEscape(name.Namespace) + "/" + url.QueryEscape(name.Local) + below
	if c.URL.RawQuery != "" && !strings.Contains(below, "?") {
		target += "?" + c.URL.RawQuery
	}
	request := peer.WebRequest{Method: method, Target: target, ContentType: c.Header.Get("Content-Type"), Body: string(c.given)}
	return c.passOn(ctx, owner, request, name.String(), into)
}

// passOn sends a request about something to the instance that has it. into, if it is not nil, takes the answer.
// Errors: *thereError; txn.ErrNotReady where nothing is known of the answer.
func (c *call) passOn(ctx context.Context, owner cluster.Instance, request peer.WebRequest, about string, into any) error {
	status, body, err := c.h.Instances.Web(ctx, owner, c.caller, request)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", txn.ErrNotReady, err)
	case status == http.StatusTemporaryRedirect:
		return fmt.Errorf("%w: %s has just gone to another instance", txn.ErrNotReady, about)
	case status >= http.StatusMultipleChoices:
		var reason failure
		if err := json.Unmarshal(body, &reason); err != nil || reason.Reason == "" {
			reason.Reason = http.StatusText(status)
		}
		return &thereError{status, reason.Reason}
	case into != nil:
		if err := json.Unmarshal(body, into); err != nil {
			return fmt.Errorf("answer of instance %s about %s: %w", owner.ID, about, err)
		}
	}
	return nil
}

// thereError is what another instance answered. It is every error that has its status.
type thereError struct {
	status int
	reason string
}

func (e *thereError) Error() string { return e.reason }

func (e *thereError) Is(target error) bool { return statusOf(target) == e.status }

// below is what follows the topic in the path of the request, escaped as it came.
func (c *call) below() string {
	const topicSegments = 7 // the first is empty: /admin/v2/{domain}/{tenant}/{namespace}/{topic}
	segments := strings.Split(c.URL.EscapedPath(), "/")
	if len(segments) <= topicSegments {
		return ""
	}
	return "/" + strings.Join(segments[topicSegments:], "/")
}

// unusedOnly is the query of an unload that refuses to disconnect anybody.
const unusedOnly = "?unused=true"

// deleteSpread deletes a partitioned topic whose partitions several instances serve: each has to give up first what nobody uses. With
// force none is asked.
func (c *call) deleteSpread(ctx context.Context, name topicname.Name, force bool) error {
	for {
		err := c.h.Topics.DeletePartitioned(ctx, name, force)
		owner, elsewhere := c.h.elsewhere(err)
		if !elsewhere {
			return err
		}
		var served *topic.NotOwnerError
		errors.As(err, &served)
		err = c.there(ctx, owner, http.MethodPut, served.Topic, "/unload"+unusedOnly, nil)
		if err != nil && !errors.Is(err, topic.ErrTopicNotFound) {
			return err
		}
	}
}
