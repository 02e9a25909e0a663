package pulsaradmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Topics is the topics of this process. Errors are package topic's and txn's.
type Topics interface {
	Compactions
	Participants

	TopicExists(ctx context.Context, name topicname.Name) (bool, error)
	TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error)
	PartitionedTopics(ctx context.Context, namespace string) ([]string, error)
	// MaxPartitions is how many partitions a topic may have.
	MaxPartitions() int
	Segments(ctx context.Context, namespace string) ([]string, error)
	PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error)
	PartitionedMetadata(ctx context.Context, name topicname.Name) (partitions int, properties map[string]string, err error)
	CreateTopic(ctx context.Context, name topicname.Name, properties map[string]string) error
	CreatePartitioned(ctx context.Context, name topicname.Name, partitions int, properties map[string]string) error
	UpdatePartitions(ctx context.Context, name topicname.Name, partitions int) error
	DeleteTopic(ctx context.Context, name topicname.Name, force bool) error
	DeletePartitioned(ctx context.Context, name topicname.Name, force bool) error
	Properties(ctx context.Context, name topicname.Name) (map[string]string, error)
	Created(ctx context.Context, name topicname.Name) (unixMillis int64, err error)
	UpdateProperties(ctx context.Context, name topicname.Name, set map[string]string, remove ...string) error
	Unload(ctx context.Context, name topicname.Name) error
	UnloadUnused(ctx context.Context, name topicname.Name) error
	Terminate(ctx context.Context, name topicname.Name) (*pulsarproto.MessageIdData, error)
	TopicStats(ctx context.Context, name topicname.Name) (*topic.TopicStats, error)
	InternalStats(ctx context.Context, name topicname.Name) (*topic.InternalStats, error)

	Subscriptions(ctx context.Context, name topicname.Name) ([]string, error)
	CreateSubscription(ctx context.Context, name topicname.Name, subscription string, position *pulsarproto.MessageIdData) error
	DeleteSubscription(ctx context.Context, name topicname.Name, subscription string, force bool) error
	ResetCursor(ctx context.Context, name topicname.Name, subscription string, position *pulsarproto.MessageIdData, behind bool) error
	ResetCursorToTime(ctx context.Context, name topicname.Name, subscription string, millis uint64) error
	SkipAll(ctx context.Context, name topicname.Name, subscription string) error
	SkipMessages(ctx context.Context, name topicname.Name, subscription string, n int) error
	ExpireMessages(ctx context.Context, name topicname.Name, subscription string, age time.Duration) error

	Entry(ctx context.Context, name topicname.Name, ledgerID, entryID uint64) (*topic.Message, error)
	PeekMessages(ctx context.Context, name topicname.Name, subscription string, n int) (*topic.Message, error)
	LastMessageID(ctx context.Context, name topicname.Name) (*pulsarproto.MessageIdData, error)
	MessageIDAt(ctx context.Context, name topicname.Name, millis uint64) (*pulsarproto.MessageIdData, error)
}

func topicPath(domain string) string {
	return "/admin/v2/" + domain + "/{tenant}/{namespace}/{topic}"
}

// inTopic serves a call on the topic in the path, for callers with the right.
func inTopic(domain string, wanted right, answer func(*call, topicname.Name) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		name, err := c.topicOf(domain, wanted)
		if err != nil {
			return nil, err
		}
		return answer(c, name)
	}
}

// topicRoute is a call on the topic in the path.
type topicRoute struct {
	method, below string // what follows the path of the topic
	wanted        right
	answer        func(*call, topicname.Name) (any, error)
}

func (h *handler) routeInTopic(domain, path string, routes []topicRoute) {
	for _, r := range routes {
		h.route(r.method+" "+path+r.below, inTopic(domain, r.wanted, r.answer))
	}
}

func (h *handler) routeTopics(domain string) {
	namespace := "/admin/v2/" + domain + "/{tenant}/{namespace}"
	h.route("GET "+namespace, h.listDomain(domain))
	h.route("GET "+namespace+"/partitioned", h.listPartitioned(domain))
	h.routeInTopic(domain, topicPath(domain), []topicRoute{
		{"PUT", "", administer, h.createTopic},
		{"DELETE", "", administer, h.removeTopic},
		{"PUT", "/partitions", administer, h.createPartitions},
		{"POST", "/partitions", administer, h.updatePartitions},
		{"GET", "/partitions", find, h.getPartitions},
		{"DELETE", "/partitions", administer, h.removePartitions},
		{"GET", "/properties", administer, h.getProperties},
		{"PUT", "/properties", administer, h.setProperties},
		{"DELETE", "/properties", administer, h.deleteProperty},
		{"PUT", "/unload", administer, h.unload},
		{"PUT", "/compaction", administer, h.compact},
		{"GET", "/compaction", administer, h.getCompaction},
		{"POST", "/terminate", administer, h.terminate},
		{"POST", "/terminate/partitions", administer, h.terminatePartitions},
		{"GET", "/stats", find, h.getStats},
		{"GET", "/partitioned-stats", find, h.getPartitionedStats},
		{"GET", "/internalStats", find, h.getInternalStats},
	})
}

// unpartitioned refuses what Pulsar does not do with all partitions at once.
func (h *handler) unpartitioned(ctx context.Context, name topicname.Name, what string) error {
	partitions, _, err := h.Topics.PartitionedMetadata(ctx, name)
	if err == nil && partitions > 0 {
		err = &refusal{http.StatusMethodNotAllowed, what + " a partitioned topic is not allowed"}
	}
	return err
}

func (h *handler) listDomain(domain string) func(*call) (any, error) {
	mode := pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT
	if domain == topicname.NonPersistent {
		mode = pulsarproto.CommandGetTopicsOfNamespace_NON_PERSISTENT
	}
	return func(c *call) (any, error) {
		namespace, err := c.topicsOf()
		if err != nil {
			return nil, err
		}
		return h.listTopics(c.Context(), namespace, mode)
	}
}

func (h *handler) listPartitioned(domain string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		namespace, err := c.topicsOf()
		if err != nil {
			return nil, err
		}
		all, err := h.Topics.PartitionedTopics(c.Context(), namespace)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, text := range all {
			if name, err := topicname.Parse(text); err == nil && name.Domain == domain {
				names = append(names, text)
			}
		}
		return names, nil
	}
}

// createTopic takes properties as its body, or nothing.
func (h *handler) createTopic(c *call, name topicname.Name) (any, error) {
	var properties map[string]string
	if _, err := c.read(&properties); err != nil {
		return nil, err
	}
	if err := h.mayCreate(c.Context(), name); err != nil {
		return nil, err
	}
	return nil, h.Topics.CreateTopic(c.Context(), name, properties)
}

// mayCreate refuses names that no new topic may have. One that is no UTF-8 is another one in the JSON of a list.
//
// Source: PersistentTopicsBase.validateCreateTopic.
func (h *handler) mayCreate(ctx context.Context, name topicname.Name) error {
	switch {
	case name.TransactionInternal():
		return &refusal{http.StatusBadRequest, "Cannot create topic in system topic format!"}
	case !utf8.ValidString(name.Local):
		return &topicname.Error{Name: name.String(), Rule: "it is no UTF-8"}
	}
	_, err := h.namespace(ctx, name.NamespaceName())
	return err
}

func (h *handler) removeTopic(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	return nil, h.withGrants(ctx, name.NamespaceName(), h.Topics.DeleteTopic(ctx, name, c.flag("force")), func(topic string) bool {
		return topic == name.String()
	})
}

// withGrants takes away what roles were granted on a topic that is deleted, or is gone already, and returns how the deletion ended.
// The names of a topic's grants are those that of chooses.
//
// Source: BrokerService.deleteTopicAuthenticationWithRetry.
func (h *handler) withGrants(ctx context.Context, namespace string, deleted error, of func(topic string) bool) error {
	if deleted != nil && !errors.Is(deleted, topic.ErrTopicNotFound) {
		return deleted
	}
	err := h.changeAuth(ctx, namespace, func(auth *resources.AuthPolicies) {
		maps.DeleteFunc(auth.Topics, func(topic string, _ map[string][]string) bool { return of(topic) })
	})
	if errors.Is(err, resources.ErrNamespaceNotFound) || errors.Is(err, resources.ErrTenantNotFound) {
		err = nil
	}
	return cmp.Or(deleted, err)
}

// partitionedMedia is the media type of a body with properties. Source: PersistentTopics.createPartitionedTopic.
const partitionedMedia = "application/vnd.partitioned-topic-metadata+json"

// partitionedTopic is Pulsar's PartitionedTopicMetadata.
type partitionedTopic struct {
	Partitions int               `json:"partitions"`
	Properties map[string]string `json:"properties,omitempty"`
}

// createPartitions takes a bare number, or an object of partitionedMedia.
func (h *handler) createPartitions(c *call, name topicname.Name) (any, error) {
	var given partitionedTopic
	media, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err == nil && media == partitionedMedia {
		err = c.need(&given)
	} else {
		err = c.need(&given.Partitions)
	}
	if err != nil {
		return nil, err
	}
	if err := h.mayCreate(c.Context(), name); err != nil {
		return nil, err
	}
	return nil, h.Topics.CreatePartitioned(c.Context(), name, given.Partitions, given.Properties)
}

func (h *handler) updatePartitions(c *call, name topicname.Name) (any, error) {
	var partitions int
	if err := c.need(&partitions); err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	return nil, h.Topics.UpdatePartitions(ctx, name, partitions)
}

// getPartitions answers 0 partitions for a topic without them. One that does not exist is made, where settings allow it, if
// checkAllowAutoCreation says that the client is about to use it; else it is not found.
func (h *handler) getPartitions(c *call, name topicname.Name) (any, error) {
	if name.Base() == topicname.AssignTopic {
		return partitionedTopic{Partitions: int(h.Transactions.Count())}, nil
	}
	create := c.flag("checkAllowAutoCreation") && utf8.ValidString(name.Local)
	partitions, err := h.Topics.PartitionCount(c.Context(), name, create)
	if err != nil {
		return nil, err
	}
	_, properties, err := h.Topics.PartitionedMetadata(c.Context(), name)
	return partitionedTopic{partitions, properties}, err
}

func (h *handler) removePartitions(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	return nil, h.withGrants(ctx, name.NamespaceName(), c.deleteSpread(ctx, name, c.flag("force")), func(topic string) bool {
		one, err := topicname.Parse(topic)
		return err == nil && one.Base() == name
	})
}

func (h *handler) getProperties(c *call, name topicname.Name) (any, error) {
	properties, err := h.Topics.Properties(c.Context(), name)
	if properties == nil {
		properties = map[string]string{}
	}
	return properties, err
}

func (h *handler) setProperties(c *call, name topicname.Name) (any, error) {
	var given map[string]string
	if err := c.need(&given); err != nil {
		return nil, err
	}
	return nil, h.Topics.UpdateProperties(c.Context(), name, given)
}

func (h *handler) deleteProperty(c *call, name topicname.Name) (any, error) {
	key := c.URL.Query().Get("key")
	if key == "" {
		return nil, &refusal{http.StatusBadRequest, "key: want the name of a property"}
	}
	return nil, h.Topics.UpdateProperties(c.Context(), name, nil, key)
}

// eachPartition does something with a topic, or with every partition of a partitioned one.
func (h *handler) eachPartition(ctx context.Context, name topicname.Name, do func(topicname.Name) error) error {
	partitions, _, err := h.Topics.PartitionedMetadata(ctx, name)
	if err != nil {
		return err
	}
	if partitions == 0 {
		return do(name)
	}
	for p := range partitions {
		if err := do(name.WithPartition(p)); err != nil {
			return fmt.Errorf("partition %d of %d: %w", p, partitions, err)
		}
	}
	return nil
}

// unload disconnects the clients of a topic, or, with unused=true, refuses if there are any.
func (h *handler) unload(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	unload := h.Topics.Unload
	if c.flag("unused") {
		unload = h.Topics.UnloadUnused
	}
	return nil, h.eachPartition(ctx, name, func(one topicname.Name) error {
		return c.orThere(ctx, one, unload(ctx, one), "/unload", nil)
	})
}

// messageID is Pulsar's MessageIdImpl. -1 stands for what does not exist.
type messageID struct {
	Ledger    int64 `json:"ledgerId"`
	Entry     int64 `json:"entryId"`
	Partition int32 `json:"partitionIndex"`
}

func shownID(name topicname.Name, id *pulsarproto.MessageIdData) messageID {
	return messageID{int64(id.GetLedgerId()), int64(id.GetEntryId()), int32(name.Partition())}
}

func (h *handler) terminate(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	if err := h.unpartitioned(ctx, name, "Termination of"); err != nil {
		return nil, err
	}
	last, err := h.Topics.Terminate(ctx, name)
	if err != nil {
		return nil, err
	}
	return shownID(name, last), nil
}

func (h *handler) terminatePartitions(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	partitions, _, err := h.Topics.PartitionedMetadata(ctx, name)
	if err != nil {
		return nil, err
	}
	if partitions == 0 {
		return nil, &refusal{http.StatusMethodNotAllowed, "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate commands."}
	}
	last := map[string]messageID{}
	err = h.eachPartition(ctx, name, func(one topicname.Name) error {
		id, err := h.Topics.Terminate(ctx, one)
		shown := shownID(one, id)
		if err = c.orThere(ctx, one, err, "/terminate", &shown); err == nil {
			last[strconv.Itoa(one.Partition())] = shown
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}

// missing tells a topic that does not exist from one whose namespace does not.
func (h *handler) missing(name topicname.Name, err error) error {
	if errors.Is(err, topic.ErrTopicNotFound) && h.Resources.Namespace(name.NamespaceName()) == nil {
		return resources.ErrNamespaceNotFound
	}
	return err
}
