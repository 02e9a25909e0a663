package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/tokentest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// guarded are settings of servers that ask everybody who he is, each other too, over TLS.
func guarded(t *testing.T, etcd *etcdtest.Server, token string) (set []string, files certtest.Files) {
	t.Helper()
	authority := certtest.NewAuthority(t)
	files = certtest.Write(t, authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), authority)
	return append(shared(etcd, 2), "brokerServicePortTls=0", "webServicePortTls=0",
		"tlsCertificateFilePath="+files.Certificate, "tlsKeyFilePath="+files.Key, "brokerClientTlsEnabled=true",
		"brokerClientTrustCertsFilePath="+files.Trust, "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
		"brokerClientAuthenticationParameters=token:"+token, "authenticationEnabled=true", "authorizationEnabled=true", "superUserRoles=admin",
		"authenticationProviders=AuthenticationProviderToken", tokentest.Setting()), files
}

// Transactions over topics of two instances that let nobody in without credentials, in the name of a role that may only use topics.
// The instances' own role has no right at all: what it asks for others it asks in their name.
func TestGuardedInstances(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	soon := time.Now().Add(time.Hour)
	set, files := guarded(t, etcd, tokentest.Sign(t, "instance", soon))
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, 2, first, second)
	err := first.resources.UpdateNamespace(t.Context(), "public/default", func(d resources.Document) error {
		return d.Set("auth_policies", map[string]any{"namespace_auth": map[string][]string{"clerk": {"produce", "consume"}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: second.ServiceURLTLS(), EnableTransaction: true, TLSTrustCertsFilePath: files.Trust,
		Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "clerk", soon)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	topics := names(t, 6)
	o := newOrders(t, client, topics)
	for i := range 6 {
		if _, err := o.producers[0].Send(ctx, &pulsar.ProducerMessage{Payload: []byte("order")}); err != nil {
			t.Fatal(err)
		}
		o.transact(ctx, fmt.Sprint(i), true)
	}
	for _, topic := range topics[1:] {
		if got := strings.Join(received(ctx, t, client, topic, 6), ""); got != "012345" {
			t.Errorf("%s: %s", topic, got)
		}
	}
}

// C-2: credentials that others would refuse are refused at the start, by the setting's name and without their content.
func TestBadCredentialsForInstances(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	for _, token := range []string{"garbage", tokentest.Sign(t, "instance", time.Now().Add(-time.Minute))} {
		set, _ := guarded(t, etcd, token)
		s, err := Start(t.Context(), load(t, set...))
		if err == nil {
			stop(t, s)
			t.Fatal("started")
		}
		if !strings.Contains(err.Error(), "brokerClientAuthenticationParameters") || strings.Contains(err.Error(), token) {
			t.Errorf("%v", err)
		}
	}
}

// spread starts two servers of which one leads the coordinator and the other owns a topic.
func spread(t *testing.T, topic string) (leads, owns *Server) {
	t.Helper()
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 1)
	leads, owns = start(t, load(t, set...)), start(t, load(t, set...))
	until(t, "they know each other", func() bool { return len(leads.cluster.Instances()) == 2 && len(owns.cluster.Instances()) == 2 })
	until(t, "a leader", func() bool { return len(led(leads))+len(led(owns)) == 1 && leads.cluster.PlaceCoordinator(0).ID != "" })
	if leads.cluster.PlaceCoordinator(0).ID == owns.cluster.Self().ID {
		leads, owns = owns, leads
	}
	until(t, "the placed leader", func() bool { return len(led(leads)) == 1 })
	if _, err := owns.topics.Subscriptions(t.Context(), parsed(t, topic)); err == nil {
		t.Fatal("the topic exists")
	}
	if err := owns.topics.CreateTopic(t.Context(), parsed(t, topic), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := owns.topics.Subscriptions(t.Context(), parsed(t, topic)); err != nil {
		t.Fatal(err)
	}
	return leads, owns
}

func dialTopics(ctx context.Context, t *testing.T, s *Server) *wiretopic.Client {
	t.Helper()
	client, err := wiretopic.Dial(ctx, s.ServiceURL()[len("pulsar://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A message and an acknowledgement in a transaction that nobody has told their topic's participation: the topic asks the coordinator,
// which another instance leads.
func TestRegistrationElsewhere(t *testing.T) {
	const topic = "persistent://public/default/registered"
	leads, owns := spread(t, topic)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	coordinator, client := dialTC(ctx, t, leads), dialTopics(ctx, t, owns)
	producer, err := client.Produce(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := client.Subscribe(ctx, topic, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(ctx, "plain", nil); err != nil {
		t.Fatal(err)
	}
	plain, err := consumer.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, err := coordinator.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(ctx, "in", &id); err != nil {
		t.Fatal(err)
	}
	if err := consumer.Ack(ctx, plain.ID, &id); err != nil {
		t.Fatal(err)
	}
	if err := coordinator.End(ctx, id, txn.Commit, ""); err != nil {
		t.Fatal(err)
	}
	in, err := consumer.Receive(ctx)
	if err != nil || in.Content != "in" {
		t.Errorf("%q, %v", in.Content, err)
	}
	if _, err := producer.Send(ctx, "late", &id); !refusedWith(err, pulsarproto.ServerError_NotAllowedError) {
		t.Errorf("behind the commit: %v", err)
	}
}

// O-6: an end of one participant that a client sends to the owner of a topic, while another instance leads the coordinator, is not taken
// for a decision.
func TestForgedEndElsewhere(t *testing.T) {
	const topic = "persistent://public/default/forged"
	leads, owns := spread(t, topic)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	coordinator, client := dialTC(ctx, t, leads), dialTopics(ctx, t, owns)
	producer, err := client.Produce(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	id, err := coordinator.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(ctx, "in", &id); err != nil {
		t.Fatal(err)
	}
	name, abort, mark := topic, pulsarproto.TxnAction_ABORT, uint64(0)
	forged := &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(),
		EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Topic: &name, TxnAction: &abort, TxnidLeastBitsOfLowWatermark: &mark,
		},
	}
	if _, err := client.Call(ctx, forged); !refusedWith(err, pulsarproto.ServerError_TransactionCoordinatorNotFound) {
		t.Errorf("a forged end: %v", err)
	}
	if err := coordinator.End(ctx, id, txn.Commit, ""); err != nil {
		t.Fatal(err)
	}
	reader, err := client.Reader(ctx, topic, "r")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := reader.Receive(ctx); err != nil || got.Content != "in" {
		t.Errorf("%q, %v", got.Content, err)
	}
	// Whoever says that he is an instance, and is none, is not let in.
	method, data := "pulsar-tc-instance", `{"from":"x","proof":"00","super":true}`
	version, protocol := "x", int32(21)
	_, err = wireclient.DialAs(ctx, owns.ServiceURL()[len("pulsar://"):], &pulsarproto.CommandConnect{
		ClientVersion: &version, ProtocolVersion: &protocol, OriginalAuthMethod: &method, OriginalAuthData: &data,
	})
	if err == nil || !strings.Contains(err.Error(), "no instance of this cluster") {
		t.Errorf("a stranger: %v", err)
	}
}
