package terminatedtopic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ValueVersion is the layout of the values that this build writes. docs/terminated-txn-state.md describes it.
const ValueVersion = 1

// Value is what a message says of one client name.
type Value struct {
	Version     int       `json:"version"`
	Coordinator uint64    `json:"coordinator"`
	ClientName  string    `json:"client_name"`
	Outcomes    []Outcome `json:"outcomes"` // newest first
	// Truncated tells that older outcomes are kept that did not fit.
	Truncated bool `json:"truncated"`
}

// Outcome is how one transaction ended. Times are milliseconds, moments since the epoch.
type Outcome struct {
	Txn      string `json:"txn"`             // (most,least)
	Outcome  string `json:"outcome"`         // COMMITTED or ABORTED
	TimedOut bool   `json:"timed_out"`       // its deadline aborted it
	Owner    string `json:"owner,omitempty"` // the role that opened it, where authentication is on
	Opened   int64  `json:"opened_ms"`
	TTL      uint64 `json:"ttl_ms"`
	Ended    int64  `json:"ended_ms"`
}

// leastOutcomeBytes is less than any Outcome takes.
const leastOutcomeBytes = 100

// owner is what one owner has under a name.
type shownOf struct {
	role  string
	shown preserver.Shown
}

// value returns the JSON of a name, at most maxBytes of it, or nil if it has no outcomes. At least one outcome is in it.
func value(tc uint64, name string, parts []shownOf, maxBytes int) ([]byte, error) {
	type ranked struct {
		preserver.Outcome
		role string
	}
	var all []ranked
	v := Value{Version: ValueVersion, Coordinator: tc, ClientName: name, Outcomes: []Outcome{}}
	for _, part := range parts {
		v.Truncated = v.Truncated || part.shown.More
		for _, o := range part.shown.Outcomes {
			all = append(all, ranked{o, part.role})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if len(parts) > 1 {
		slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(b.Place, a.Place) })
	}
	head, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the outcomes of %q: %w", name, err)
	}
	size := len(head)
	for _, o := range all {
		shown := Outcome{
			Txn: txn.ID{Most: tc, Least: o.Least}.String(), Outcome: o.Status.String(), TimedOut: o.TimedOut,
			Owner: o.role, Opened: o.Opened, TTL: o.TTL, Ended: o.Ended,
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return nil, fmt.Errorf("encode the outcome of %s: %w", shown.Txn, err)
		}
		size += len(text) + len(",")
		if size > maxBytes && len(v.Outcomes) > 0 {
			v.Truncated = true
			break
		}
		v.Outcomes = append(v.Outcomes, shown)
	}
	return json.Marshal(v)
}

// producerName stands in the metadata of every message.
const producerName = "pulsar-tc"

// payload returns the message of a name, a tombstone if value is nil.
func payload(name string, place uint64, millis int64, value []byte) ([]byte, error) {
	metadata := &pulsarproto.MessageMetadata{
		ProducerName: proto.String(producerName),
		SequenceId:   proto.Uint64(place),
		PublishTime:  proto.Uint64(uint64(max(millis, 0))),
		PartitionKey: proto.String(name),
	}
	if value == nil {
		metadata.NullValue = proto.Bool(true)
	}
	return pulsarproto.AppendPayload(nil, metadata, value)
}
