package pulsaradmin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/resources"
)

// policy is one member of the stored policies and the path below a namespace or a topic that it is set by.
type policy struct {
	path   string
	member string
	kind   kind
	method string // that sets it; empty: POST
	query  string // query parameter that has the value instead of the body
	unset  any    // what GET answers where it is not set; nil: 204
	// effect tells that it changes what the broker does; the others are stored and answered.
	effect bool
}

func (p *policy) setMethod() string {
	if p.method == "" {
		return http.MethodPost
	}
	return p.method
}

// parse reads the value that a request sets.
func (p *policy) parse(c *call) (any, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	if p.query != "" && len(text) == 0 {
		text = []byte(c.URL.Query().Get(p.query))
	}
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil, badBody(fmt.Errorf("%s: it is empty", p.path))
	}
	return p.kind(text)
}

// kind reads a value of one type, in its stored form, or says which rule it breaks.
type kind func(text []byte) (any, error)

// whole is a whole number that is at least least. rule replaces the text of the refusal, where clients look for it.
func whole(least int64, rule string) kind {
	return func(text []byte) (any, error) {
		var n resources.Number
		if err := n.UnmarshalJSON(text); err != nil {
			return nil, badBody(err)
		}
		if int64(n) < least {
			if rule != "" {
				return nil, badValue("%s", rule)
			}
			return nil, badValue("%d: want a whole number of at least %d", n, least)
		}
		return n, nil
	}
}

// truth is true or false, also as a string.
func truth(text []byte) (any, error) {
	switch strings.ToLower(unquoted(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, badBody(fmt.Errorf("%.40q: want true or false", text))
}

// word is one of words, with or without quotes.
func word(words ...string) kind {
	return func(text []byte) (any, error) {
		given := unquoted(text)
		if !slices.Contains(words, given) {
			return nil, badBody(fmt.Errorf("%.60q: want one of %s", given, strings.Join(words, ", ")))
		}
		return given, nil
	}
}

func unquoted(text []byte) string { return strings.Trim(string(text), `"`) }

// free is any JSON object. It is stored as it came.
func free(text []byte) (any, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, badBody(err)
	}
	return object, nil
}

// object is a JSON object that V knows, checked by check.
func object[V any](check func(V) error) kind {
	return func(text []byte) (any, error) {
		var value V
		if err := json.Unmarshal(text, &value); err != nil {
			return nil, badBody(err)
		}
		if err := check(value); err != nil {
			return nil, err
		}
		return free(text)
	}
}

// strategies are those of schemas. Source: SchemaCompatibilityStrategy.java.
var strategies = []string{
	"UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
	"BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
}

// checkRetention refuses what would keep nothing or is no number of Pulsar's.
//
// Source: NamespacesBase.checkRetention: both are 0, or both are not.
func checkRetention(r resources.Retention) error {
	switch {
	case r.Minutes < -1 || r.Megabytes < -1:
		return badValue("Invalid retention policy: retentionTimeInMinutes=%d, retentionSizeInMB=%d, want -1 or more", r.Minutes, r.Megabytes)
	case (r.Minutes == 0) != (r.Megabytes == 0):
		return badValue("Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a non-zero value. Use the value of -1 instead of 0 to ignore a specific limit.")
	}
	return nil
}

// checkAutoTopicCreation has Pulsar's texts. A number that no first use could make is refused here, not at each of them.
//
// Source: NamespacesBase.internalSetAutoTopicCreationAsync, AutoTopicCreationOverrideImpl.validateOverride.
func checkAutoTopicCreation(mostPartitions func() int) func(resources.AutoTopicCreation) error {
	return func(a resources.AutoTopicCreation) error {
		invalid := func(detail string) error {
			return badValue("Invalid configuration for autoTopicCreationOverride. the detail is %s", detail)
		}
		switch {
		case !a.Allow:
		case a.Type != "partitioned" && a.Type != "non-partitioned":
			return invalid(fmt.Sprintf("Unknown topic type [%.60s]", a.Type))
		case a.Type == "non-partitioned" && a.Partitions != nil:
			return invalid("[defaultNumPartitions] is not allowed to be set when the type is non-partition.")
		case a.Type == "non-partitioned":
		case a.Partitions == nil:
			return invalid("[defaultNumPartitions] cannot be null when the type is partitioned.")
		case *a.Partitions < 1:
			return invalid("[defaultNumPartitions] cannot be less than 1 for partition type.")
		case int64(*a.Partitions) > int64(mostPartitions()):
			return &refusal{http.StatusNotAcceptable, fmt.Sprintf("defaultNumPartitions=%d: Number of partitions should be less than or equal to %d",
				*a.Partitions, mostPartitions())}
		}
		return nil
	}
}

func checkInactiveTopics(i resources.InactiveTopics) error {
	switch {
	case i.Mode != "" && i.Mode != "delete_when_no_subscriptions" && i.Mode != "delete_when_subscriptions_caught_up":
		return badValue("inactiveTopicDeleteMode=%.60q: want delete_when_no_subscriptions or delete_when_subscriptions_caught_up", i.Mode)
	case i.DurationSeconds < 1:
		return badValue("maxInactiveDurationSeconds=%d: want 1 or more", i.DurationSeconds)
	}
	return nil
}

func checkDelayedDelivery(d resources.DelayedDelivery) error {
	if d.Active && d.TickMillis <= 0 {
		return badValue("tickTime=%d: want 1 or more (ms) when it is active", d.TickMillis)
	}
	return nil
}

func anyOf[V any](V) error { return nil }
