package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// maxListings is how many lists are made at once, on all connections: each may hold as much as the largest frame.
const maxListings = 4

// getTopicsOfNamespace lists the topics of a namespace, unfiltered: clients match their pattern themselves.
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
	if listSize(topics) > r.options.MaxMessageSize {
		r.fail(command, requestID, &requestError{pulsarproto.ServerError_TooManyRequests,
			fmt.Sprintf("namespace %s has %d topics, too many for one frame", cmd.GetNamespace(), len(topics))})
		return
	}
	r.answer(func(b []byte) []byte { return pulsarproto.AppendTopicsOfNamespace(b, requestID, topics) })
}

// listSize bounds the encoded size of topics from above: a tag and a length of at most 3 bytes each.
func listSize(topics []string) int {
	size := 0
	for _, topic := range topics {
		size += len(topic) + 4
	}
	return size
}
