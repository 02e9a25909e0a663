package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Authorizer decides what a caller may do. It is asked before anything is looked at, so that a refusal does not tell what
// exists. Methods may read the store and run in a goroutine of the request. Errors carry their ServerError.
type Authorizer interface {
	// Lookup: find a topic, its partitions and its schema.
	Lookup(ctx context.Context, caller Caller, topic topicname.Name) error
	// Produce: attach a producer, write in a transaction, store a schema.
	Produce(ctx context.Context, caller Caller, topic topicname.Name) error
	// Consume: attach a consumer, acknowledge in a transaction.
	Consume(ctx context.Context, caller Caller, topic topicname.Name, subscription string) error
	// ListTopics: the names of the topics of tenant/namespace.
	ListTopics(ctx context.Context, caller Caller, namespace string) error
}
