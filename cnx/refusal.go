package cnx

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// Refusal is an error with the code that the client is given.
type Refusal struct {
	Code pulsarproto.ServerError
	Text string
}

// Refuse returns a refusal.
func Refuse(code pulsarproto.ServerError, text string) *Refusal { return &Refusal{code, text} }

func (r *Refusal) Error() string { return r.Text }

// ServerError is the wire's code of the refusal.
func (r *Refusal) ServerError() pulsarproto.ServerError { return r.Code }
