package pulsaradmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (h *handler) peek(c *call, name topicname.Name) (any, error) {
	subscription, err := c.subscription()
	if err != nil {
		return nil, err
	}
	n, err := c.number("position", 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	if err := h.unpartitioned(ctx, name, "Peek messages on"); err != nil {
		return nil, err
	}
	position := int(min(n, 1<<31-1))
	message, err := h.Topics.PeekMessages(ctx, name, subscription, position)
	if errors.Is(err, topic.ErrSubscriptionNotFound) {
		message, err = h.peekNew(ctx, name, subscription, position)
	}
	if err != nil {
		return nil, h.missing(name, err)
	}
	return shownMessage(message)
}

// peekNew makes the subscription, from the earliest message on, and peeks at it.
//
// Source: PersistentTopicsBase.getSubscriptionReference.
func (h *handler) peekNew(ctx context.Context, name topicname.Name, subscription string, n int) (*topic.Message, error) {
	err := h.Topics.CreateSubscription(ctx, name, subscription, earliest.id())
	if err != nil && !errors.Is(err, topic.ErrSubscriptionExists) {
		return nil, err
	}
	return h.Topics.PeekMessages(ctx, name, subscription, n)
}

func (h *handler) getEntry(c *call, name topicname.Name) (any, error) {
	ledger, err := c.number("ledger", 0)
	if err != nil {
		return nil, err
	}
	entry, err := c.number("entry", 0)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	message, err := h.Topics.Entry(ctx, name, uint64(ledger), uint64(entry))
	if err != nil {
		return nil, h.missing(name, err)
	}
	return shownMessage(message)
}

// shownMessage is an entry: its content as the body, as the producer encoded it, and its metadata as headers. The messages of a
// batch are in the body one behind the other, each behind the size of its metadata and the metadata.
//
// Source: PersistentTopicsBase.generateResponseWithEntry; clients read X-Pulsar-Message-ID and X-Pulsar-Num-Batch-Message. Pulsar
// answers compressed content uncompressed; here X-Pulsar-Compression says how the body is to be read.
func shownMessage(m *topic.Message) (*reply, error) {
	metadata, content, err := pulsarproto.ParsePayload(m.Payload)
	if err != nil {
		return nil, fmt.Errorf("entry %d:%d: %w", m.ID.GetLedgerId(), m.ID.GetEntryId(), err)
	}
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	set := func(name, value string) {
		if value != "" {
			header.Set("X-Pulsar-"+name, value)
		}
	}
	set("Message-ID", fmt.Sprintf("%d:%d", m.ID.GetLedgerId(), m.ID.GetEntryId()))
	set("Publish-Time", formatTime(metadata.GetPublishTime()))
	set("Event-Time", formatTime(metadata.GetEventTime()))
	set("Deliver-At-Time", formatTime(uint64(max(metadata.GetDeliverAtTime(), 0))))
	set("Producer-Name", metadata.GetProducerName())
	set("Sequence-Id", strconv.FormatUint(metadata.GetSequenceId(), 10))
	set("Partition-Key", metadata.GetPartitionKey())
	if metadata.NumMessagesInBatch != nil {
		set("Num-Batch-Message", strconv.Itoa(int(metadata.GetNumMessagesInBatch())))
	}
	if metadata.GetCompression() != pulsarproto.CompressionType_NONE {
		set("Compression", metadata.GetCompression().String())
		set("Uncompressed-Size", strconv.Itoa(int(metadata.GetUncompressedSize())))
	}
	if err := setProperties(header, metadata); err != nil {
		return nil, err
	}
	return &reply{http.StatusOK, header, content}, nil
}

// setProperties shows properties as JSON, for names of headers know neither case nor all characters.
func setProperties(header http.Header, metadata *pulsarproto.MessageMetadata) error {
	if len(metadata.GetProperties()) == 0 {
		return nil
	}
	properties := map[string]string{}
	for _, pair := range metadata.GetProperties() {
		properties[pair.GetKey()] = pair.GetValue()
	}
	text, err := json.Marshal(properties)
	header.Set("X-Pulsar-Property", string(text))
	return err
}

// formatTime is Unix milliseconds as Pulsar's DateFormatter writes them; 0 is no time.
func formatTime(millis uint64) string {
	if millis == 0 {
		return ""
	}
	return time.UnixMilli(int64(millis)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
