package conn

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// nameTags lets in whoever says his name in auth_data.
type nameTags struct{}

func (nameTags) Login(_ []*x509.Certificate, cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	role := string(cmd.GetAuthData())
	return cnx.Identity{Caller: Caller{Role: role, Known: true, Super: role == "root"}}, nil
}

func (nameTags) Refresh(cnx.Identity, []*x509.Certificate, *pulsarproto.AuthData) (cnx.Identity, error) {
	return cnx.Identity{}, errors.New("nothing here expires")
}

// denial is a refusal of houseRules.
type denial struct{}

func (denial) Error() string { return "not authorized" }
func (denial) ServerError() pulsarproto.ServerError {
	return pulsarproto.ServerError_AuthorizationError
}

// houseRules: writer produces, reader consumes, root does both, stranger nothing.
type houseRules struct{}

func (houseRules) Lookup(_ context.Context, caller Caller, _ topicname.Name) error {
	return allow(caller, "writer", "reader")
}

func (houseRules) Produce(_ context.Context, caller Caller, _ topicname.Name) error {
	return allow(caller, "writer")
}

func (houseRules) Consume(_ context.Context, caller Caller, _ topicname.Name, _ string) error {
	return allow(caller, "reader")
}

func (houseRules) ListTopics(_ context.Context, caller Caller, _ string) error {
	return allow(caller, "writer", "reader")
}

func allow(caller Caller, roles ...string) error {
	if caller.Role == "root" || slices.Contains(roles, caller.Role) {
		return nil
	}
	return denial{}
}

// spies count the questions that reach a service which may know something of a topic or change it.
type spies struct {
	mu    sync.Mutex
	calls int
}

func (s *spies) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
}

func (s *spies) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

type spyTopics struct {
	*spies
	*fakeTopics
}

func (s spyTopics) PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error) {
	s.note()
	return s.fakeTopics.PartitionCount(ctx, name, create)
}

func (s spyTopics) TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	s.note()
	return s.fakeTopics.TopicsOfNamespace(ctx, namespace, mode)
}

func (s spyTopics) Produce(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandProducer, client ProducerClient) (Producer, ProducerInfo, error) {
	s.note()
	return s.fakeTopics.Produce(ctx, name, caller, cmd, client)
}

func (s spyTopics) Subscribe(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandSubscribe, client ConsumerClient) (Consumer, error) {
	s.note()
	return s.fakeTopics.Subscribe(ctx, name, caller, cmd, client)
}

func (s spyTopics) EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, decided bool, done func(error)) {
	s.note()
	s.fakeTopics.EndTxn(ctx, id, participant, action, lowWaterMark, decided, done)
}

type spyCoordinators struct {
	*spies
	*fakeCoordinators
}

func (s spyCoordinators) AddParticipants(ctx context.Context, id txn.ID, caller Caller, participants []txn.Participant, done func(error)) {
	s.note()
	s.fakeCoordinators.AddParticipants(ctx, id, caller, participants, done)
}

type spyLookup struct {
	*spies
	*fakeLookup
}

func (s spyLookup) Topic(ctx context.Context, name topicname.Name, caller Caller, cmd *pulsarproto.CommandLookupTopic) (LookupAnswer, error) {
	s.note()
	return s.fakeLookup.Topic(ctx, name, caller, cmd)
}

type spySchemas struct {
	*spies
	fakeSchemas
}

func (s spySchemas) Schema(ctx context.Context, name topicname.Name, version []byte) (*pulsarproto.Schema, []byte, bool, error) {
	s.note()
	return s.fakeSchemas.Schema(ctx, name, version)
}

func (s spySchemas) AddSchema(ctx context.Context, name topicname.Name, caller Caller, added *pulsarproto.Schema) ([]byte, error) {
	s.note()
	return s.fakeSchemas.AddSchema(ctx, name, caller, added)
}

// rule says who is served a command.
type rule struct {
	command *pulsarproto.BaseCommand // nil: one that a client must not send, or that the handshake has used up
	roles   []string                 // who may; nil: everybody, as the command touches only what the connection has attached or opened itself
	refusal pulsarproto.ServerError  // of the others
}

func wire(kind pulsarproto.BaseCommand_Type, fill func(*pulsarproto.BaseCommand)) *pulsarproto.BaseCommand {
	command := &pulsarproto.BaseCommand{Type: &kind}
	fill(command)
	return command
}

// rules must have every command that there is: one without a rule fails TestRights.
func rules() map[pulsarproto.BaseCommand_Type]rule {
	const denied, hidden = pulsarproto.ServerError_AuthorizationError, pulsarproto.ServerError_TransactionNotFound
	both, writer, reader, root := []string{"writer", "reader", "root"}, []string{"writer", "root"}, []string{"reader", "root"}, []string{"root"}
	all := map[pulsarproto.BaseCommand_Type]rule{
		pulsarproto.BaseCommand_LOOKUP:                  {lookupCommand(1, "t"), both, denied},
		pulsarproto.BaseCommand_PARTITIONED_METADATA:    {metadataCommand(1, "t"), both, denied},
		pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE: {listCommand(1, "public/default"), both, denied},
		pulsarproto.BaseCommand_WATCH_TOPIC_LIST:        {watchCommand(1, 1, ".*"), both, denied},
		pulsarproto.BaseCommand_GET_SCHEMA:              {getSchemaCommand(1, "t", nil), both, denied},
		pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA: {wire(pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA, func(c *pulsarproto.BaseCommand) {
			c.GetOrCreateSchema = &pulsarproto.CommandGetOrCreateSchema{RequestId: proto.Uint64(1), Topic: proto.String("t"), Schema: wireSchema(pulsarproto.Schema_Json, "{}")}
		}), writer, denied},
		pulsarproto.BaseCommand_PRODUCER:                {producerCommand(1, 1, "t"), writer, denied},
		pulsarproto.BaseCommand_SUBSCRIBE:               {subscribeCommand(1, 1, "t"), reader, denied},
		pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN:    {addPartitionCommand(1, 0, 1, "t"), writer, denied},
		pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN: {addSubscriptionCommand(1, 0, 1, "t", "s"), reader, denied},
		pulsarproto.BaseCommand_END_TXN_ON_PARTITION:    {endOnPartitionCommand(1, 0, 1, "t"), root, hidden},
		pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION: {endOnSubscriptionCommand(1, 0, 1, "t", "s"), root, hidden},

		// The coordinator checks the owner.
		pulsarproto.BaseCommand_NEW_TXN: {command: newTxnCommand(1, 0)},
		pulsarproto.BaseCommand_END_TXN: {command: endTxnCommand(1, 0, 1, pulsarproto.TxnAction_COMMIT)},
		// It tells no more than that a coordinator exists.
		pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST: {command: tcConnectCommand(1, 0)},
		pulsarproto.BaseCommand_PING:                      {command: pingCommand()},
		pulsarproto.BaseCommand_PONG:                      {command: pongCommand()},
	}
	// They reach what the connection has attached, and that needed the right.
	for _, command := range []*pulsarproto.BaseCommand{
		closeProducerCommand(1, 1), closeConsumerCommand(1, 1), flowCommand(1, 1), ackCommand(proto.Uint64(1), 1, 0, 0), seekCommand(1, 1),
		unsubscribeCommand(1, 1), lastMessageIDCommand(1, 1),
		wire(pulsarproto.BaseCommand_SEND, func(c *pulsarproto.BaseCommand) { c.Send = sendCommand(1, 0).Send }),
		wire(pulsarproto.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES, func(c *pulsarproto.BaseCommand) {
			c.RedeliverUnacknowledgedMessages = &pulsarproto.CommandRedeliverUnacknowledgedMessages{ConsumerId: proto.Uint64(1)}
		}),
		wire(pulsarproto.BaseCommand_CONSUMER_STATS, func(c *pulsarproto.BaseCommand) {
			c.ConsumerStats = &pulsarproto.CommandConsumerStats{RequestId: proto.Uint64(1), ConsumerId: proto.Uint64(1)}
		}),
		wire(pulsarproto.BaseCommand_WATCH_TOPIC_LIST_CLOSE, func(c *pulsarproto.BaseCommand) {
			c.WatchTopicListClose = &pulsarproto.CommandWatchTopicListClose{RequestId: proto.Uint64(1), WatcherId: proto.Uint64(1)}
		}),
		wire(pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE, func(c *pulsarproto.BaseCommand) {
			c.ScalableTopicSubscribe = &pulsarproto.CommandScalableTopicSubscribe{RequestId: proto.Uint64(1), Topic: proto.String("t"),
				Subscription: proto.String("s"), ConsumerName: proto.String("c"), ConsumerId: proto.Uint64(1)}
		}),
	} {
		all[command.GetType()] = rule{command: command}
	}
	// A client must not send them, or not now.
	for _, kind := range []pulsarproto.BaseCommand_Type{
		pulsarproto.BaseCommand_CONNECT, pulsarproto.BaseCommand_CONNECTED, pulsarproto.BaseCommand_AUTH_CHALLENGE,
		pulsarproto.BaseCommand_AUTH_RESPONSE, pulsarproto.BaseCommand_SUCCESS, pulsarproto.BaseCommand_ERROR,
		pulsarproto.BaseCommand_SEND_RECEIPT, pulsarproto.BaseCommand_SEND_ERROR, pulsarproto.BaseCommand_MESSAGE,
		pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE, pulsarproto.BaseCommand_LOOKUP_RESPONSE,
		pulsarproto.BaseCommand_CONSUMER_STATS_RESPONSE, pulsarproto.BaseCommand_REACHED_END_OF_TOPIC,
		pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID_RESPONSE, pulsarproto.BaseCommand_ACTIVE_CONSUMER_CHANGE,
		pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE, pulsarproto.BaseCommand_GET_SCHEMA_RESPONSE,
		pulsarproto.BaseCommand_ACK_RESPONSE, pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE,
		pulsarproto.BaseCommand_NEW_TXN_RESPONSE, pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE,
		pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, pulsarproto.BaseCommand_END_TXN_RESPONSE,
		pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE, pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE,
		pulsarproto.BaseCommand_WATCH_TOPIC_LIST_SUCCESS, pulsarproto.BaseCommand_WATCH_TOPIC_UPDATE,
		pulsarproto.BaseCommand_TOPIC_MIGRATED, pulsarproto.BaseCommand_SCALABLE_TOPIC_LOOKUP,
		pulsarproto.BaseCommand_SCALABLE_TOPIC_UPDATE, pulsarproto.BaseCommand_SCALABLE_TOPIC_CLOSE,
		pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, pulsarproto.BaseCommand_SCALABLE_TOPIC_ASSIGNMENT_UPDATE,
		pulsarproto.BaseCommand_WATCH_SCALABLE_TOPICS, pulsarproto.BaseCommand_WATCH_SCALABLE_TOPICS_UPDATE,
		pulsarproto.BaseCommand_WATCH_SCALABLE_TOPICS_CLOSE, pulsarproto.BaseCommand_WATCH_TC_ASSIGNMENTS,
		pulsarproto.BaseCommand_WATCH_TC_ASSIGNMENTS_UPDATE, pulsarproto.BaseCommand_WATCH_TC_ASSIGNMENTS_CLOSE,
		pulsarproto.BaseCommand_PRODUCER_SUCCESS, pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE,
	} {
		all[kind] = rule{}
	}
	return all
}

func (b *bench) peerOf(t *testing.T, role string) *peer {
	p := b.newPeer(t)
	connect := connectCommand(21)
	connect.Connect.AuthData = []byte(role)
	p.send(connect)
	p.want(pulsarproto.BaseCommand_CONNECTED)
	return p
}

// A role never reads, acks, ends or sees what it has no right to: for each command that there is and each role, whoever lacks
// the right is refused before any service is asked, with the same words whatever exists.
func TestRights(t *testing.T) {
	all := rules()
	for number, name := range pulsarproto.BaseCommand_Type_name {
		kind := pulsarproto.BaseCommand_Type(number)
		rule, ruled := all[kind]
		if !ruled {
			t.Errorf("%s has no rule: say in rules() who may send it", name)
		}
		if rule.command == nil {
			continue
		}
		for _, role := range []string{"stranger", "writer", "reader", "root"} {
			t.Run(name+" by "+role, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkRight(t, rule, role) })
			})
		}
	}
}

func checkRight(t *testing.T, rule rule, role string) {
	b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: houseRules{}})
	watched := &spies{}
	b.services = Services{
		Coordinators: spyCoordinators{watched, b.coordinators}, Topics: spyTopics{watched, b.topics},
		Lookup: spyLookup{watched, b.lookup}, Schemas: spySchemas{watched, fakeSchemas{}}, TopicFeed: &fakeFeed{},
	}
	p := b.peerOf(t, role)
	p.send(rule.command)
	synctest.Wait()
	if rule.roles == nil {
		if watched.count() != 0 {
			t.Error("it asks for something beyond the connection and needs roles in its rule")
		}
		return
	}
	answer, err := p.receive()
	if err != nil {
		t.Fatal(err)
	}
	code, refused := refusalOf(answer)
	switch may := slices.Contains(rule.roles, role); {
	case may && refused:
		t.Errorf("refused: %v", answer)
	case may && watched.count() == 0:
		t.Error("no service was asked")
	case !may && (!refused || code != rule.refusal):
		t.Errorf("answered %v, want %s", answer, rule.refusal)
	case !may && watched.count() != 0:
		t.Error("a service was asked for somebody without the right")
	}
}

// refusalOf returns the code of an answer that is an error.
func refusalOf(answer *pulsarproto.BaseCommand) (pulsarproto.ServerError, bool) {
	reflected := answer.ProtoReflect()
	body := reflected.Get(reflected.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(answer.GetType()))).Message()
	for _, name := range []protoreflect.Name{"error", "error_code"} {
		if field := body.Descriptor().Fields().ByName(name); field != nil && body.Has(field) {
			return pulsarproto.ServerError(body.Get(field).Enum()), true
		}
	}
	return 0, false
}

// A producer that brings a subscription along needs the right to both.
func TestInitialSubscriptionNeedsConsume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: houseRules{}})
		command := producerCommand(1, 1, "t")
		command.Producer.InitialSubscriptionName = proto.String("s")
		p := b.peerOf(t, "writer")
		p.send(command)
		p.wantError(1, pulsarproto.ServerError_AuthorizationError)
		p = b.peerOf(t, "root")
		p.send(command)
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
	})
}

// The text for a transaction of others is that for one that does not exist (TC-26).
func TestEndOnParticipantHidesTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: houseRules{}})
		p := b.peerOf(t, "writer")
		p.send(endOnPartitionCommand(1, 0, 5, "t"))
		answer := p.want(pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE).GetEndTxnOnPartitionResponse()
		if want := (&txn.NotFoundError{ID: txn.ID{Least: 5}}).Error(); answer.GetMessage() != want {
			t.Errorf("text %q, want %q", answer.GetMessage(), want)
		}
	})
}

// revocable is houseRules, until it is told that nobody may do anything any more, or that the rights cannot be read.
type revocable struct {
	houseRules
	verdict atomic.Pointer[error]
}

func (r *revocable) Produce(ctx context.Context, caller Caller, name topicname.Name) error {
	if verdict := r.verdict.Load(); verdict != nil {
		return *verdict
	}
	return r.houseRules.Produce(ctx, caller, name)
}

func (r *revocable) Consume(ctx context.Context, caller Caller, name topicname.Name, subscription string) error {
	if verdict := r.verdict.Load(); verdict != nil {
		return *verdict
	}
	return r.houseRules.Consume(ctx, caller, name, subscription)
}

// Who loses a right is disconnected at once, those being attached included, and closed once; others stay.
func TestCheckRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &revocable{}
		b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: rules})
		release := make(chan struct{})
		writer, reader, late := b.peerOf(t, "writer"), b.peerOf(t, "reader"), b.peerOf(t, "reader")
		writer.send(producerCommand(1, 7, "t"))
		writer.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		reader.send(subscribeCommand(1, 8, "t"))
		reader.want(pulsarproto.BaseCommand_SUCCESS)
		b.topics.subscribe = func(_ context.Context, client ConsumerClient) (Consumer, error) {
			<-release
			return b.topics.newConsumer(client), nil
		}
		late.send(subscribeCommand(1, 9, "t"))
		synctest.Wait()

		b.CheckRights(t.Context())
		away := error(cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, "away"))
		rules.verdict.Store(&away)
		b.CheckRights(t.Context())
		writer.alive()
		reader.alive()

		lost := error(denial{})
		rules.verdict.Store(&lost)
		b.CheckRights(t.Context())
		b.CheckRights(t.Context())
		close(release)
		if closed := writer.want(pulsarproto.BaseCommand_CLOSE_PRODUCER).GetCloseProducer(); closed.GetProducerId() != 7 {
			t.Errorf("closed %v", closed)
		}
		if closed := reader.want(pulsarproto.BaseCommand_CLOSE_CONSUMER).GetCloseConsumer(); closed.GetConsumerId() != 8 {
			t.Errorf("closed %v", closed)
		}
		late.wantError(1, pulsarproto.ServerError_ServiceNotReady)
		synctest.Wait()
		if b.topics.producer(0).closed() != 1 || read(&b.topics.consumer(0).mu, &b.topics.consumer(0).closes) != 1 || read(&b.topics.consumer(1).mu, &b.topics.consumer(1).closes) != 1 {
			t.Error("not closed, or more than once")
		}
		writer.send(producerCommand(2, 7, "t"))
		writer.wantError(2, pulsarproto.ServerError_AuthorizationError)
	})
}

// A producer that waits to become exclusive loses its place with its right: it keeps others away from the topic meanwhile.
func TestCheckRightsOfOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &revocable{}
		b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: rules})
		waits := true
		b.topics.produce = func(ctx context.Context, client ProducerClient) (Producer, ProducerInfo, error) {
			client.Queued(ProducerInfo{Name: "waits"})
			<-ctx.Done()
			waits = false
			return nil, ProducerInfo{}, ctx.Err()
		}
		writer := b.peerOf(t, "writer")
		writer.send(producerCommand(1, 7, "t"))
		writer.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		lost := error(denial{})
		rules.verdict.Store(&lost)
		b.CheckRights(t.Context())
		synctest.Wait()
		if waits {
			t.Fatal("it still waits")
		}
		writer.wantError(1, pulsarproto.ServerError_ServiceNotReady)
		writer.send(producerCommand(2, 7, "t"))
		writer.wantError(2, pulsarproto.ServerError_AuthorizationError)
	})
}
