package pulsaradmin

import (
	"context"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Participants answers for the part of transactions at topics and subscriptions. Errors are package topic's and txn's.
type Participants interface {
	BufferStats(ctx context.Context, name topicname.Name) (*topic.BufferStats, error)
	InBuffer(ctx context.Context, name topicname.Name, id txn.ID) (*topic.InBuffer, error)
	PendingAckStats(ctx context.Context, name topicname.Name, subscription string) (*topic.PendingAckStats, error)
	CumulativeInPendingAck(ctx context.Context, name topicname.Name, subscription string, id txn.ID) (string, error)
	AckStateOf(ctx context.Context, name topicname.Name, subscription string, ledgerID, entryID uint64, index int) (topic.AckState, error)
}

// bufferStats is Pulsar's TransactionBufferStats as far as a topic here has it, and which transaction holds the topic back.
type bufferStats struct {
	State             string `json:"state"`
	MaxReadPosition   string `json:"maxReadPosition"`
	OngoingTxnSize    int    `json:"ongoingTxnSize"`
	OldestTransaction string `json:"oldestTransaction,omitempty"`
}

// ready is the state of a participant that answers: one that cannot be loaded answers with the error.
const ready = "Ready"

func (h *handler) bufferStats(c *call) (any, error) {
	name, err := c.participant()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	s, err := h.Topics.BufferStats(ctx, name)
	if err != nil {
		return nil, err
	}
	shown := bufferStats{State: ready, MaxReadPosition: s.MaxReadPosition, OngoingTxnSize: s.Open}
	if s.Open > 0 {
		shown.OldestTransaction = s.Oldest.String()
	}
	return shown, nil
}

// participant returns the topic in the path. Callers have been found to be super users.
func (c *call) participant() (topicname.Name, error) {
	return c.topicNamed(topicname.Persistent)
}

func (h *handler) inBufferStats(c *call) (any, error) {
	name, err := c.participant()
	if err != nil {
		return nil, err
	}
	id, err := c.transactionID()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	s, err := h.Topics.InBuffer(ctx, name, id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"startPosition": s.StartPosition, "aborted": s.Aborting}, nil
}

// inSubscription returns the topic and the subscription in the path.
func (c *call) inSubscription() (name topicname.Name, subscription string, err error) {
	if name, err = c.participant(); err != nil {
		return name, "", err
	}
	subscription, err = c.subscription()
	return name, subscription, err
}

func (h *handler) pendingAckStats(c *call) (any, error) {
	name, subscription, err := c.inSubscription()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	s, err := h.Topics.PendingAckStats(ctx, name, subscription)
	if err != nil {
		return nil, err
	}
	return map[string]any{"state": ready, "ongoingTxnSize": s.Open, "pendingEntries": s.Entries}, nil
}

func (h *handler) inPendingAckStats(c *call) (any, error) {
	name, subscription, err := c.inSubscription()
	if err != nil {
		return nil, err
	}
	id, err := c.transactionID()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	position, err := h.Topics.CumulativeInPendingAck(ctx, name, subscription, id)
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	if position != "" {
		shown["cumulativeAckPosition"] = position
	}
	return shown, nil
}

// ackStates are Pulsar's names. Source: PositionInPendingAckStats.State.
var ackStates = map[topic.AckState]string{
	topic.InvalidPosition: "InvalidPosition", topic.MarkDelete: "MarkDelete", topic.PendingAck: "PendingAck",
	topic.NotInPendingAck: "NotInPendingAck",
}

func (h *handler) positionStats(c *call) (any, error) {
	name, subscription, err := c.inSubscription()
	if err != nil {
		return nil, err
	}
	ledgerID, err := c.number("ledger", 0)
	if err != nil {
		return nil, err
	}
	entryID, err := c.number("entry", 0)
	if err != nil {
		return nil, err
	}
	index := -1
	if text := c.URL.Query().Get("batchIndex"); text != "" {
		if index, err = strconv.Atoi(text); err != nil {
			return nil, badValue("batchIndex=%.100q: want a whole number", text)
		}
	}
	ctx, cancel := c.within()
	defer cancel()
	state, err := h.Topics.AckStateOf(ctx, name, subscription, uint64(ledgerID), uint64(entryID), index)
	if err != nil {
		return nil, err
	}
	return map[string]string{"state": ackStates[state]}, nil
}
