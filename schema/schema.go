package schema

import "time"

// Schema is what a client or an operator gives for a topic. Nobody changes Data and Properties once they are set.
type Schema struct {
	Type       Type
	Data       []byte
	Properties map[string]string
}

// Version is a schema of a topic as it is stored.
type Version struct {
	Schema
	Number  uint64    // counted from 0 in each topic; a deletion takes one, too
	Created time.Time // in milliseconds
	User    string    // role that brought it, may be empty
}

// InvalidError is a schema whose type or definition is not sound.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// IncompatibleError is a sound schema that may not follow the ones that the topic has.
type IncompatibleError struct{ Reason string }

func (e *IncompatibleError) Error() string { return e.Reason }
