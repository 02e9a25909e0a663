package server

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// An operator sees which transaction holds a topic back, and what a subscription holds for it.
func TestAdminParticipants(t *testing.T) {
	s := start(t, load(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: s.ServiceURL(), EnableTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const topic = "persistent://public/default/held"
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("plain")})
	if err != nil {
		t.Fatal(err)
	}
	transaction, err := client.NewTransaction(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	held, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("held"), Transaction: transaction})
	if err != nil {
		t.Fatal(err)
	}
	message, err := consumer.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.AckWithTxn(message, transaction); err != nil {
		t.Fatal(err)
	}
	base, id := s.WebURL()+"/admin/v3/transactions/", transaction.GetTxnID()
	shown := fmt.Sprintf("(%d,%d)", id.MostSigBits, id.LeastSigBits)
	inPath := fmt.Sprintf("/%d/%d", id.MostSigBits, id.LeastSigBits)
	at := func(m pulsar.MessageID) string { return fmt.Sprintf("%d:%d", m.LedgerID(), m.EntryID()) }
	for _, c := range []struct {
		path, field string
		want        any
	}{
		{"transactionBufferStats/public/default/held", "ongoingTxnSize", 1.0},
		{"transactionBufferStats/public/default/held", "oldestTransaction", shown},
		{"transactionBufferStats/public/default/held", "maxReadPosition", at(plain)},
		{"transactionInBufferStats/public/default/held" + inPath, "startPosition", at(held)},
		{"pendingAckStats/public/default/held/s", "ongoingTxnSize", 1.0},
		{fmt.Sprintf("positionStatsInPendingAck/public/default/held/s/%d/%d", plain.LedgerID(), plain.EntryID()), "state", "PendingAck"},
		{fmt.Sprintf("positionStatsInPendingAck/public/default/held/s/%d/%d", held.LedgerID(), held.EntryID()), "state", "NotInPendingAck"},
		{fmt.Sprintf("positionStatsInPendingAck/public/default/held/s/%d/99", held.LedgerID()), "state", "InvalidPosition"},
	} {
		if code, got := getObject(t, base+c.path); code != http.StatusOK || got[c.field] != c.want {
			t.Errorf("%s: %d %v, want %s %v", c.path, code, got, c.field, c.want)
		}
	}
	if err := transaction.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if code, got := getObject(t, base+fmt.Sprintf("positionStatsInPendingAck/public/default/held/s/%d/%d", plain.LedgerID(), plain.EntryID())); got["state"] != "MarkDelete" {
		t.Errorf("after the commit: %d %v", code, got)
	}
	if code, got := getObject(t, base+"transactionBufferStats/public/default/held"); got["ongoingTxnSize"] != 0.0 || got["maxReadPosition"] != at(held) {
		t.Errorf("after the commit: %d %v", code, got)
	}
	for _, path := range []string{
		"transactionInBufferStats/public/default/held" + inPath, "transactionInPendingAckStats/public/default/held/s" + inPath,
		"pendingAckStats/public/default/held/other", "transactionBufferStats/public/default/other",
	} {
		if code, got := getObject(t, base+path); code != http.StatusNotFound || got["reason"] == "" {
			t.Errorf("%s: %d %v, want 404 with a reason", path, code, got)
		}
	}
}
