package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// maxListings is how many lists and schemas are read at once, on all connections: each may hold as much as the largest frame.
const maxListings = 4

// getTopicsOfNamespace lists the topics of a namespace that match the client's pattern. It does not filter by a pattern that
// it does not match, and says so: clients match then themselves.
// Errors: AuthorizationError, those of Topics.TopicsOfNamespace; TooManyRequests for a list that no frame can hold.
//
// Source: PulsarApi.proto CommandGetTopicsOfNamespace; ServerCnx.handleGetTopicsOfNamespace.
func (r request) getTopicsOfNamespace(cmd *pulsarproto.CommandGetTopicsOfNamespace) {
	r.requests.Go(func() {
		if !r.awaitListing() {
			return
		}
		defer r.listed()
		r.listTopics(cmd)
	})
}

// awaitListing waits until this connection has no other list at work, its peer has read what was sent before, and fewer than
// maxListings are at work elsewhere. It returns false if the connection ends first; listed must be called otherwise.
func (r request) awaitListing() bool {
	select {
	case r.listing <- struct{}{}:
	case <-r.ctx.Done():
		return false
	}
	r.out.waitForRoom()
	select {
	case r.server.listings <- struct{}{}:
		return true
	case <-r.ctx.Done():
		<-r.listing
		return false
	}
}

func (r request) listed() {
	<-r.server.listings
	<-r.listing
}

func (r request) listTopics(cmd *pulsarproto.CommandGetTopicsOfNamespace) {
	const command = pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE
	requestID := cmd.GetRequestId()
	if err := r.mayListTopics(cmd.GetNamespace()); err != nil {
		r.fail(command, requestID, err)
		return
	}
	topics, err := r.services.Topics.TopicsOfNamespace(r.ctx, cmd.GetNamespace(), cmd.GetMode())
	if err != nil {
		r.fail(command, requestID, err)
		return
	}
	list := r.listFor(cmd, topics)
	if err := r.checkListSize(cmd.GetNamespace(), list.Topics); err != nil {
		r.fail(command, requestID, err)
		return
	}
	r.answer(func(b []byte) []byte { return pulsarproto.AppendTopicsOfNamespace(b, requestID, list) })
}

// listFor is the answer to cmd in a namespace that has topics.
func (r request) listFor(cmd *pulsarproto.CommandGetTopicsOfNamespace, topics []string) pulsarproto.TopicsOfNamespace {
	list := pulsarproto.TopicsOfNamespace{Topics: topics}
	if cmd.TopicsPattern != nil {
		if pattern, err := r.options.topicPattern(cmd.GetTopicsPattern()); err == nil {
			list.Topics, list.Filtered = pattern.filter(topics), true
		}
	}
	list.Hash = topicsHash(list.Topics)
	if cmd.TopicsHash != nil && cmd.GetTopicsHash() == list.Hash {
		list.Topics, list.Unchanged = nil, true
	}
	return list
}

// checkListSize refuses a list that no frame can hold.
func (s *session) checkListSize(namespace string, topics []string) error {
	if listSize(topics) <= s.options.MaxMessageSize {
		return nil
	}
	return cnx.Refuse(pulsarproto.ServerError_TooManyRequests,
		fmt.Sprintf("namespace %s has %d topics, too many for one frame", namespace, len(topics)))
}

// listSize bounds the encoded size of topics from above: a tag and a length of at most 3 bytes each.
func listSize(topics []string) int {
	size := 0
	for _, topic := range topics {
		size += len(topic) + 4
	}
	return size
}
