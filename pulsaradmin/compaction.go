package pulsaradmin

import (
	"context"
	"errors"
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Compactions start the compaction of topics and tell how it went.
type Compactions interface {
	Compact(ctx context.Context, name topicname.Name) error
	CompactionStatus(ctx context.Context, name topicname.Name) (topic.CompactionStatus, error)
}

// compact starts the compaction of a topic, or of every partition of a partitioned one.
//
// Source: PersistentTopics.compact.
func (h *handler) compact(c *call, name topicname.Name) (any, error) {
	if name.Domain != topicname.Persistent {
		return nil, &refusal{http.StatusMethodNotAllowed, "Compaction is not supported on topics that are not persistent"}
	}
	ctx, cancel := c.within()
	defer cancel()
	err := h.eachPartition(ctx, name, func(one topicname.Name) error {
		return c.orThere(ctx, one, h.Topics.Compact(ctx, one), "/compaction", nil)
	})
	if errors.Is(err, topic.ErrCompactionRunning) {
		return nil, &refusal{http.StatusConflict, topic.ErrCompactionRunning.Text}
	}
	return nil, err
}

// processStatus is Pulsar's LongRunningProcessStatus.
type processStatus struct {
	Status    string `json:"status"`
	LastError string `json:"lastError"`
}

func (h *handler) getCompaction(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	status, err := h.Topics.CompactionStatus(ctx, name)
	if err != nil {
		return nil, err
	}
	return processStatus{status.State, status.Error}, nil
}
