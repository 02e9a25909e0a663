package admin

import (
	"context"
	"net/http"
)

type roleKey struct{}

// WithRole returns r as a request of a role that has been authenticated. What it does is recorded under the role, whatever it says itself.
func WithRole(r *http.Request, role string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), roleKey{}, role))
}

// roleOf returns the role of a request; empty without authentication.
func roleOf(r *http.Request) string {
	role, _ := r.Context().Value(roleKey{}).(string)
	return role
}
