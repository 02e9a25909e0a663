package pulsaradmin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (h *handler) routeSubscriptions(domain string) {
	const one = "/subscription/{subscription}"
	h.routeInTopic(domain, topicPath(domain), []topicRoute{
		{"GET", "/subscriptions", find, h.listSubscriptions},
		{"PUT", one, consume, h.createSubscription},
		{"DELETE", one, consume, h.deleteSubscription},
		{"POST", one + "/resetcursor", consume, h.resetCursor},
		{"POST", one + "/resetcursor/{timestamp}", consume, h.resetCursorToTime},
		{"POST", one + "/skip/{count}", consume, h.skip},
		{"POST", one + "/skip_all", consume, h.skipAll},
		{"POST", one + "/expireMessages/{seconds}", consume, h.expire},
		{"POST", "/all_subscription/expireMessages/{seconds}", administer, h.expireAll},
		{"GET", one + "/position/{position}", consume, large(h.peek)},
		{"GET", "/ledger/{ledger}/entry/{entry}", consume, large(h.getEntry)},
		{"GET", "/lastMessageId", find, h.lastMessageID},
		{"GET", "/messageid/{timestamp}", find, h.messageIDAt},
	})
}

// subscription returns the name in the path. The Go client escapes it twice: once for the path, once for Pulsar, which decodes it
// again. The Java client escapes it once; what has no escape left after that is the name.
//
// Source: PersistentTopics.decode(encodedSubName).
func (c *call) subscription() (string, error) {
	raw := c.raw("subscription")
	name, err := url.QueryUnescape(raw)
	if twice, wrong := url.QueryUnescape(c.PathValue("subscription")); wrong == nil && strings.Contains(raw, "%25") && utf8.ValidString(twice) {
		name = twice
	}
	if err != nil || name == "" {
		return "", badValue("Subscription name is not valid: %.100q", raw)
	}
	return name, nil
}

// number reads a number of the path that is at least least.
func (c *call) number(part string, least int64) (int64, error) {
	n, err := strconv.ParseInt(c.PathValue(part), 10, 64)
	if err != nil || n < least {
		return 0, &refusal{http.StatusBadRequest, part + "=" + c.PathValue(part) + ": want a whole number of at least " + strconv.FormatInt(least, 10)}
	}
	return n, nil
}

// onSubscription does something with the subscription of the path at every partition. It is not found if no partition has it.
func (h *handler) onSubscription(c *call, name topicname.Name, do func(ctx context.Context, one topicname.Name, subscription string) error) (any, error) {
	subscription, err := c.subscription()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	found, missing := 0, error(nil)
	err = h.eachPartition(ctx, name, func(one topicname.Name) error {
		err := c.orThere(ctx, one, do(ctx, one, subscription), c.below(), nil)
		if is(err, topic.ErrTopicNotFound, topic.ErrSubscriptionNotFound) {
			missing = err
			return nil
		}
		if err == nil {
			found++
		}
		return err
	})
	if err == nil && found == 0 {
		err = h.missing(name, missing)
	}
	return nil, err
}

func (h *handler) listSubscriptions(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	names := map[string]bool{}
	answer := []string{}
	err := h.eachPartition(ctx, name, func(one topicname.Name) error {
		some, err := h.Topics.Subscriptions(ctx, one)
		err = c.orThere(ctx, one, err, "/subscriptions", &some)
		if one.Partition() >= 0 && errors.Is(err, topic.ErrTopicNotFound) { // a partition that nobody has used
			return nil
		}
		for _, subscription := range some {
			if !names[subscription] {
				names[subscription] = true
				answer = append(answer, subscription)
			}
		}
		return err
	})
	return answer, h.missing(name, err)
}

// position is a message id of a request. Ids without an entry stand for the earliest and the latest.
type position struct {
	Ledger int64 `json:"ledgerId"`
	Entry  int64 `json:"entryId"`
	Batch  int32 `json:"batchIndex"`
	// Excluded makes the message behind it the next one. Source: ResetCursorData.
	Excluded bool `json:"isExcluded"`
}

// earliest stands for the first message that is kept. Source: MessageId.earliest.
var earliest = position{Ledger: -1, Entry: -1}

func (p *position) id() *pulsarproto.MessageIdData {
	ledger, entry := uint64(p.Ledger), uint64(p.Entry)
	return &pulsarproto.MessageIdData{LedgerId: &ledger, EntryId: &entry}
}

// createSubscription begins at the message id of the body; without one at the latest.
func (h *handler) createSubscription(c *call, name topicname.Name) (any, error) {
	var at position
	given, err := c.read(&at)
	if err != nil {
		return nil, err
	}
	var id *pulsarproto.MessageIdData
	if given {
		id = at.id()
	}
	subscription, err := c.subscription()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	partitioned, _, err := h.Topics.PartitionedMetadata(ctx, name)
	if err != nil {
		return nil, err
	}
	exist := 0
	err = h.eachPartition(ctx, name, func(one topicname.Name) error {
		if err := h.ensureTopic(ctx, one); err != nil {
			return err
		}
		err := c.orThere(ctx, one, h.Topics.CreateSubscription(ctx, one, subscription, id), c.below(), nil)
		if partitioned > 0 && errors.Is(err, topic.ErrSubscriptionExists) {
			if exist++; exist < partitioned { // of an attempt that was cut off
				return nil
			}
		}
		return err
	})
	return nil, h.missing(name, err)
}

// ensureTopic makes a topic that its first use would make.
func (h *handler) ensureTopic(ctx context.Context, name topicname.Name) error {
	if name.Partition() < 0 {
		return nil
	}
	if err := h.Topics.CreateTopic(ctx, name, nil); err != nil && !errors.Is(err, topic.ErrTopicExists) {
		return err
	}
	return nil
}

func (h *handler) deleteSubscription(c *call, name topicname.Name) (any, error) {
	return h.onSubscription(c, name, func(ctx context.Context, one topicname.Name, subscription string) error {
		return h.Topics.DeleteSubscription(ctx, one, subscription, c.flag("force"))
	})
}

// resetCursor goes to a message, which is in one partition, or to the earliest or the latest, which every partition has.
//
// Source: PersistentTopicsBase.internalResetCursorOnPosition, which goes nowhere on a partitioned topic.
func (h *handler) resetCursor(c *call, name topicname.Name) (any, error) {
	var to position
	if err := c.need(&to); err != nil {
		return nil, err
	}
	if to.Ledger >= 0 && to.Ledger != math.MaxInt64 {
		if err := h.unpartitioned(c.Context(), name, "Reset-cursor at position of"); err != nil {
			return nil, err
		}
	}
	return h.onSubscription(c, name, func(ctx context.Context, one topicname.Name, subscription string) error {
		return h.Topics.ResetCursor(ctx, one, subscription, to.id(), to.Excluded)
	})
}

func (h *handler) resetCursorToTime(c *call, name topicname.Name) (any, error) {
	millis, err := c.number("timestamp", 0)
	if err != nil {
		return nil, err
	}
	return h.onSubscription(c, name, func(ctx context.Context, one topicname.Name, subscription string) error {
		return h.Topics.ResetCursorToTime(ctx, one, subscription, uint64(millis))
	})
}

func (h *handler) skip(c *call, name topicname.Name) (any, error) {
	count, err := c.number("count", 0)
	if err != nil {
		return nil, err
	}
	if err := h.unpartitioned(c.Context(), name, "Skip messages on"); err != nil {
		return nil, err
	}
	return h.onSubscription(c, name, func(ctx context.Context, one topicname.Name, subscription string) error {
		return h.Topics.SkipMessages(ctx, one, subscription, int(min(count, 1<<31-1)))
	})
}

func (h *handler) skipAll(c *call, name topicname.Name) (any, error) {
	return h.onSubscription(c, name, h.Topics.SkipAll)
}

func (h *handler) expire(c *call, name topicname.Name) (any, error) {
	age, err := c.age()
	if err != nil {
		return nil, err
	}
	return h.onSubscription(c, name, func(ctx context.Context, one topicname.Name, subscription string) error {
		return h.Topics.ExpireMessages(ctx, one, subscription, age)
	})
}

// age reads seconds of the path.
func (c *call) age() (time.Duration, error) {
	seconds, err := c.number("seconds", 0)
	return time.Duration(min(seconds, 1<<32)) * time.Second, err
}

func (h *handler) expireAll(c *call, name topicname.Name) (any, error) {
	age, err := c.age()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	err = h.eachPartition(ctx, name, func(one topicname.Name) error {
		subscriptions, err := h.Topics.Subscriptions(ctx, one)
		err = c.orThere(ctx, one, err, c.below(), nil)
		if one.Partition() >= 0 && errors.Is(err, topic.ErrTopicNotFound) {
			return nil
		}
		for _, subscription := range subscriptions {
			if err := h.Topics.ExpireMessages(ctx, one, subscription, age); err != nil && !errors.Is(err, topic.ErrSubscriptionNotFound) {
				return err
			}
		}
		return err
	})
	return nil, h.missing(name, err)
}

func (h *handler) lastMessageID(c *call, name topicname.Name) (any, error) {
	last, err := h.Topics.LastMessageID(c.Context(), name)
	if err != nil {
		return nil, h.missing(name, err)
	}
	return shownID(name, last), nil
}

func (h *handler) messageIDAt(c *call, name topicname.Name) (any, error) {
	millis, err := c.number("timestamp", 0)
	if err != nil {
		return nil, err
	}
	id, err := h.Topics.MessageIDAt(c.Context(), name, uint64(millis))
	if err != nil {
		return nil, h.missing(name, err)
	}
	return shownID(name, id), nil
}
