package pulsaradmin

import (
	"context"
	"net/http"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// partitioned has one topic of three partitions, x, and notes whose cursors are reset.
type partitioned struct {
	Topics
	reset []string
}

func (p *partitioned) PartitionedMetadata(_ context.Context, name topicname.Name) (int, map[string]string, error) {
	if name.Local == "x" {
		return 3, nil, nil
	}
	return 0, nil, nil
}

func (p *partitioned) ResetCursor(_ context.Context, name topicname.Name, _ string, _ *pulsarproto.MessageIdData, _ bool) error {
	p.reset = append(p.reset, name.Local)
	return nil
}

// The id of a message names a place in one partition: in the others it would skip or repeat whatever is there.
func TestResetCursorOfPartitions(t *testing.T) {
	for _, test := range []struct {
		topic, to string
		want, n   int
	}{
		{"x", `{"ledgerId":5,"entryId":7}`, http.StatusMethodNotAllowed, 0},
		{"x", `{"ledgerId":-1,"entryId":-1}`, http.StatusNoContent, 3},
		{"x", `{"ledgerId":9223372036854775807,"entryId":9223372036854775807}`, http.StatusNoContent, 3},
		{"x-partition-1", `{"ledgerId":5,"entryId":7}`, http.StatusNoContent, 1},
	} {
		h, topics := guarded(t), &partitioned{}
		h.Topics = topics
		answer := h.try("POST", "/admin/v2/persistent/public/default/"+test.topic+"/subscription/s/resetcursor", "root", test.to)
		if answer.Code != test.want || len(topics.reset) != test.n {
			t.Errorf("%s to %s: %d %s, reset %v, want %d", test.topic, test.to, answer.Code, answer.Body, topics.reset, test.want)
		}
	}
}
