package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// errTooManyLookups refuses a lookup beyond MaxConcurrentLookups.
//
// Source: ServerCnx.handleLookup, "Failed due to too many pending lookup requests".
var errTooManyLookups = cnx.Refuse(pulsarproto.ServerError_TooManyRequests,
	"Failed due to too many pending lookup requests")

// partitionedMetadata tells how many partitions a topic has; for the assignment topic that is the number of coordinators.
// Errors: InvalidTopicName, AuthorizationError, TooManyRequests, and those of Topics.PartitionCount.
//
// Source: PulsarApi.proto CommandPartitionedTopicMetadata; ServerCnx.handlePartitionMetadataRequest.
func (r request) partitionedMetadata(cmd *pulsarproto.CommandPartitionedTopicMetadata) {
	requestID := cmd.GetRequestId()
	failed := func(err error) {
		code, text := r.failure(pulsarproto.BaseCommand_PARTITIONED_METADATA, err, false)
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendPartitionedMetadataError(b, requestID, code, text)
		})
	}
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		failed(err)
		return
	}
	create := cmd.MetadataAutoCreationEnabled == nil || *cmd.MetadataAutoCreationEnabled
	r.lookup(failed, func() {
		count, err := r.partitionCount(r.ctx, name, create)
		if err != nil {
			failed(err)
			return
		}
		r.answer(func(b []byte) []byte { return pulsarproto.AppendPartitionedMetadata(b, requestID, count) })
	})
}

func (r request) partitionCount(ctx context.Context, name topicname.Name, create bool) (uint32, error) {
	if err := r.mayLookup(name); err != nil {
		return 0, err
	}
	if name == topicname.AssignTopic {
		return uint32(r.services.Coordinators.Count()), nil
	}
	if name.TransactionInternal() {
		return 0, nil
	}
	count, err := r.services.Topics.PartitionCount(ctx, name, create)
	return uint32(count), err
}

// lookup runs answer in a goroutine of its own, or failed if too many lookups are being answered.
func (r request) lookup(failed func(error), answer func()) {
	select {
	case r.server.lookups <- struct{}{}:
	default:
		failed(errTooManyLookups)
		return
	}
	r.requests.Go(func() {
		defer func() { <-r.server.lookups }()
		answer()
	})
}
