package authentication

import "fmt"

// Refused is why somebody is not let in. Its text is for the client, Cause for the log; a nil Cause adds nothing.
type Refused struct {
	Text  string
	Cause error
}

func (e *Refused) Error() string { return e.Text }
func (e *Refused) Unwrap() error { return e.Cause }

// What a client is told.
const (
	missing = "Authentication required"
	invalid = "Unable to authenticate: the credentials are not valid"
	expired = "Unable to authenticate: the credentials have expired"
)

func refuseInvalid(format string, args ...any) error {
	return &Refused{Text: invalid, Cause: fmt.Errorf(format, args...)}
}
