package admin

import (
	"errors"
	"net/http"
)

// maxRequests is how many requests are answered at once: people and their monitoring need a few, and each may hold an answer
// of some MiB until it is read. Health has as many of its own, so that slow readers of lists do not make the process look ill.
const maxRequests = 64

var errTooManyRequests = errors.New("64 requests are being answered already, try again")

// limited serves next, and 503 beyond maxRequests at once.
func (h *handler) limited(next http.Handler) http.Handler {
	tokens := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case tokens <- struct{}{}:
		default:
			w.Header().Set("Retry-After", "1")
			h.fail(w, r, http.StatusServiceUnavailable, errTooManyRequests)
			return
		}
		defer func() { <-tokens }()
		next.ServeHTTP(w, r)
	})
}
