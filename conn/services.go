package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// What a connection and the services hand each other.
type (
	Caller         = cnx.Caller
	ProducerInfo   = cnx.ProducerInfo
	Send           = cnx.Send
	Producer       = cnx.Producer
	ProducerClient = cnx.ProducerClient
	Delivery       = cnx.Delivery
	Consumer       = cnx.Consumer
	ConsumerClient = cnx.ConsumerClient
	LookupAnswer   = cnx.LookupAnswer
	Peer           = cnx.Peer
)

// Coordinators is the transaction coordinator side of a connection. No method blocks. Every done is called exactly once,
// possibly before the method returns, from any goroutine, and must not block.
type Coordinators interface {
	// Count is the number of coordinators; 0 if transactions are off.
	Count() uint64
	// Connect answers TC_CLIENT_CONNECT_REQUEST for an existing tc. Waits while the coordinator loads, up to its own bound.
	// ended is called when the coordinator's term ends: the connection must then be closed, so that its client looks up again
	// (TC-24); at once, or, if another process goes on with the coordinator and is asked meanwhile (handedOver), when it is
	// idle. It does not block, and the registration ends with ctx, which is the connection's. A connection registers once with a tc.
	// Errors: txn.ErrNotReady.
	Connect(ctx context.Context, tc uint64, ended func(handedOver bool), done func(error))
	// NewTxn opens a transaction. named tells a request with client_name (even a blank one, which is refused).
	NewTxn(ctx context.Context, tc uint64, caller Caller, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error))
	// AddParticipants registers participants, all or none.
	AddParticipants(ctx context.Context, id txn.ID, caller Caller, participants []txn.Participant, done func(error))
	// EndTxn ends id; done is called when every participant applied it and the outcome is durable.
	EndTxn(ctx context.Context, id txn.ID, caller Caller, action txn.Action, named bool, done func(error))
}

// Topics is the produce and consume side of a connection. Errors are package txn's and topic's; servererror.go maps them.
type Topics interface {
	// PartitionCount returns the number of partitions of name; 0 for a plain topic, existing or not. create is
	// metadata_auto_creation_enabled: true lets a missing topic be made where settings allow it.
	PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error)
	// TopicsOfNamespace lists full topic names (partitions one by one), without internal ones.
	TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error)
	// Produce attaches a producer. cmd.Topic is already parsed as name. The ctx ends with the connection or when the client
	// closes the producer meanwhile. It may block and runs in a goroutine of its own; client may be used before it returns.
	Produce(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandProducer, client ProducerClient) (Producer, ProducerInfo, error)
	// Subscribe attaches a consumer. Nothing is delivered before Flow. ctx and goroutine as in Produce.
	Subscribe(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandSubscribe, client ConsumerClient) (Consumer, error)
	// EndTxn applies END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION. decided tells that a coordinator of the cluster sends it,
	// whose decision is durable. done as in Coordinators.
	EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, decided bool, done func(error))
}

// Lookup finds the owner of a topic.
type Lookup interface {
	// Topic answers LOOKUP for a user topic or an assignment partition.
	Topic(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandLookupTopic) (LookupAnswer, error)
}

// Schemas is the schema side of a connection.
type Schemas interface {
	// Schema answers GET_SCHEMA: the version that 8 bytes name, or the latest if version is nil, with its own version. found is
	// false if there is none.
	Schema(ctx context.Context, name topicname.Name, version []byte) (s *pulsarproto.Schema, number []byte, found bool, err error)
	// AddSchema answers GET_OR_CREATE_SCHEMA with the version of s, which is stored if the topic does not have it. The version
	// of type None is empty.
	AddSchema(ctx context.Context, name topicname.Name, caller Caller, s *pulsarproto.Schema) (version []byte, err error)
}

// TopicFeed tells of topics that come and go.
type TopicFeed interface {
	// Follow has changed called, until stop, with each persistent topic of a namespace (tenant/namespace) that came or went, and
	// with the zero Name where any may have. changed does not block and does not call stop.
	Follow(namespace string, changed func(topicname.Name)) (stop func())
}
