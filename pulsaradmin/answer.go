package pulsaradmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// requestTimeout bounds one request; the connection is cut not much later.
const requestTimeout = 25 * time.Second

// refusal is an error with the status that it is answered with.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func badBody(err error) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf("request body: %v", err)}
}

// badValue refuses a value that can be read and breaks a rule.
func badValue(format string, values ...any) error {
	return &refusal{http.StatusPreconditionFailed, fmt.Sprintf(format, values...)}
}

// failure is the body of every error.
type failure struct {
	Reason string `json:"reason"`
}

// reply is an answer that is no JSON, or that has a status of its own.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func plainText(text string) *reply {
	return &reply{http.StatusOK, http.Header{"Content-Type": {"text/plain"}}, []byte(text)}
}

func (h *handler) send(w http.ResponseWriter, value any) {
	switch value := value.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case *reply:
		for name, values := range value.header {
			w.Header()[name] = values
		}
		w.WriteHeader(value.status)
		h.write(w, value.body)
	default:
		h.sendJSON(w, http.StatusOK, value)
	}
}

func (h *handler) sendJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		h.Log.Error().Err(err).Msg("could not encode an answer")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	h.write(w, text)
}

func (h *handler) write(w http.ResponseWriter, text []byte) {
	if _, err := w.Write(text); err != nil {
		h.Log.Debug().Err(err).Msg("could not send an answer")
	}
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	event := h.Log.Debug()
	if status >= http.StatusInternalServerError {
		event = h.Log.Warn()
	}
	event.Err(err).Int("status", status).Str("method", r.Method).Str("path", r.URL.Path).Msg("an admin request is refused")
	h.sendJSON(w, status, failure{err.Error()})
}

// statusOf is the status of an error of this package or one of those that it asks.
func statusOf(err error) int {
	var known *refusal
	var there *thereError
	var denied *authorization.Denied
	var resource *resources.Error
	var name *topicname.Error
	var noTransaction *txn.NotFoundError
	var ended *txn.StatusError
	var invalid *schema.InvalidError
	var incompatible *schema.IncompatibleError
	switch {
	case errors.As(err, &known):
		return known.status
	case errors.As(err, &there):
		return there.status
	case errors.As(err, &denied):
		return http.StatusUnauthorized
	case errors.As(err, &resource):
		return resourceStatus[resource.Kind]
	case errors.As(err, &name):
		return http.StatusPreconditionFailed
	case errors.As(err, &noTransaction), is(err, topic.ErrTopicNotFound, topic.ErrNamespaceNotFound, topic.ErrSubscriptionNotFound, topic.ErrMessageNotFound):
		return http.StatusNotFound
	case errors.As(err, &invalid): // Source: SchemasResourceBase.
		return http.StatusUnprocessableEntity
	case errors.As(err, &ended), errors.As(err, &incompatible), is(err, topic.ErrTopicExists, topic.ErrSubscriptionExists):
		return http.StatusConflict
	case is(err, topic.ErrTopicBusy, topic.ErrSubscriptionBusy, topic.ErrSubscriptionName, txn.ErrNotAllowed, txn.ErrTooManyRequests):
		return http.StatusPreconditionFailed
	case is(err, txn.ErrNotReady, txn.ErrCoordinatorNotFound, topic.ErrPersistence, context.DeadlineExceeded, context.Canceled):
		return http.StatusServiceUnavailable
	}
	var unavailable *authorization.Unavailable
	if errors.As(err, &unavailable) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

var resourceStatus = map[resources.Kind]int{
	resources.NotFound: http.StatusNotFound,
	resources.Conflict: http.StatusConflict,
	resources.Invalid:  http.StatusPreconditionFailed,
}

func is(err error, any ...error) bool {
	for _, one := range any {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
