package authorization

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Denied is a refusal. It says nothing about what exists.
type Denied struct {
	Role   string
	Action string // in words
	Target string // as the caller named it
}

func (e *Denied) Error() string {
	return fmt.Sprintf("%q is not authorized to %s %s", e.Role, e.Action, e.Target)
}

// ServerError is the code of every refusal.
func (e *Denied) ServerError() pulsarproto.ServerError {
	return pulsarproto.ServerError_AuthorizationError
}

// Unavailable says that the rights could not be read. A retry is safe.
type Unavailable struct{ Err error }

func (e *Unavailable) Error() string { return "permissions are not available: " + e.Err.Error() }
func (e *Unavailable) Unwrap() error { return e.Err }

// ServerError makes clients ask again.
func (e *Unavailable) ServerError() pulsarproto.ServerError {
	return pulsarproto.ServerError_ServiceNotReady
}
