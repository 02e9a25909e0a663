package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// maxBody bounds a request body: two names of topics and a little.
const maxBody = 64 << 10

// How many transactions one list shows: unless the request says otherwise, and at most. The most takes some MiB.
const (
	listLimit    = 1000
	MaxListLimit = 10_000
)

type handler struct {
	transactions Transactions
	health       func() Health
	log          zerolog.Logger
}

// New returns the handler of every path in the package comment. metrics serves /metrics.
func New(transactions Transactions, health func() Health, metrics http.Handler, log zerolog.Logger) http.Handler {
	h := &handler{transactions: transactions, health: health, log: log}
	large := http.NewServeMux()
	large.Handle("GET /metrics", metrics)
	large.HandleFunc("GET /pulsar-tc/v1/transactions", h.list)
	large.HandleFunc("GET /pulsar-tc/v1/transactions/{most}/{least}", h.describe)
	large.HandleFunc("POST /pulsar-tc/v1/transactions/{most}/{least}/resolve", h.resolve)
	mux := http.NewServeMux()
	mux.Handle("/", h.limited(large))
	mux.Handle("GET /health", h.limited(http.HandlerFunc(h.getHealth)))
	return mux
}

func (h *handler) getHealth(w http.ResponseWriter, _ *http.Request) {
	health := h.health()
	code := http.StatusOK
	if !health.Healthy {
		code = http.StatusServiceUnavailable
	}
	h.write(w, code, health)
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	filter, err := parseFilter(r)
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err)
		return
	}
	found, err := h.transactions.List(r.Context(), filter)
	if err != nil {
		h.fail(w, r, statusOf(err), err)
		return
	}
	h.writeList(w, found)
}

var states = []string{txn.Open.String(), txn.Committing.String(), txn.Aborting.String()}

func parseFilter(r *http.Request) (Filter, error) {
	q := r.URL.Query()
	f := Filter{State: strings.ToUpper(q.Get("state")), ClientName: q.Get("clientName"), Limit: listLimit}
	if f.State != "" && !slices.Contains(states, f.State) {
		return Filter{}, fmt.Errorf("state=%q: want one of %s", q.Get("state"), strings.Join(states, ", "))
	}
	if s := q.Get("olderThan"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return Filter{}, fmt.Errorf("olderThan=%q: want a duration such as 90s or 5m", s)
		}
		f.OlderThan = d
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > MaxListLimit {
			return Filter{}, fmt.Errorf("limit=%q: want a number from 1 to %d", s, MaxListLimit)
		}
		f.Limit = n
	}
	return f, nil
}

func pathID(r *http.Request) (txn.ID, error) {
	return txn.ParseID(r.PathValue("most") + "," + r.PathValue("least"))
}

func (h *handler) describe(w http.ResponseWriter, r *http.Request) {
	id, err := pathID(r)
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err)
		return
	}
	found, err := h.transactions.Describe(r.Context(), id)
	if err != nil {
		h.fail(w, r, statusOf(err), err)
		return
	}
	h.write(w, http.StatusOK, found)
}

// Resolution is the body of a resolve request. Operator counts only where the request has no role, see WithRole.
type Resolution struct {
	Topic        string `json:"topic"`
	Subscription string `json:"subscription,omitempty"`
	Operator     string `json:"operator"`
}

func (h *handler) resolve(w http.ResponseWriter, r *http.Request) {
	id, err := pathID(r)
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err)
		return
	}
	var body Resolution
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		h.fail(w, r, http.StatusBadRequest, fmt.Errorf("request body: %w", err))
		return
	}
	operator := cmp.Or(roleOf(r), body.Operator)
	if body.Topic == "" || operator == "" {
		h.fail(w, r, http.StatusBadRequest, errors.New("request body: topic and operator are required"))
		return
	}
	p := txn.Participant{Topic: body.Topic}
	if body.Subscription != "" {
		p.Subscription, p.Kind = body.Subscription, txn.AckedSubscription
	}
	if err := h.transactions.Resolve(r.Context(), id, p, operator); err != nil {
		h.fail(w, r, statusOf(err), err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// statusOf is the HTTP status of an error of package txn.
func statusOf(err error) int {
	var notFound *txn.NotFoundError
	var status *txn.StatusError
	switch {
	case errors.As(err, &notFound):
		return http.StatusNotFound
	case errors.Is(err, txn.ErrNotAllowed), errors.As(err, &status):
		return http.StatusConflict
	case errors.Is(err, txn.ErrCoordinatorNotFound), errors.Is(err, txn.ErrNotReady):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
