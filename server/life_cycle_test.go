package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestSendsBehindClose holds FC-32: sends that are under way while an administrator unloads, deletes or terminates their topic
// are stored and answered, or ignored, and never cost a connection; another client commits meanwhile.
func TestSendsBehindClose(t *testing.T) {
	name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: "t"}
	for what, act := range map[string]func(context.Context, *Server) error{
		"unload": func(ctx context.Context, s *Server) error { return s.topics.Unload(ctx, name) },
		"delete": func(ctx context.Context, s *Server) error { return s.topics.DeleteTopic(ctx, name, true) },
		"terminate": func(ctx context.Context, s *Server) error {
			_, err := s.topics.Terminate(ctx, name)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := start(t, load(t))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			client, other := dial(ctx, t, s), dial(ctx, t, s)
			producer, err := client.Produce(ctx, name.String())
			if err != nil {
				t.Fatal(err)
			}
			var answered receipts
			for i := range 20 {
				answered.start(producer, fmt.Sprint("before ", i))
			}
			acted := make(chan error, 1)
			go func() { acted <- act(ctx, s) }()
			for i := range 200 {
				answered.start(producer, fmt.Sprint("meanwhile ", i))
			}
			commitOne(t, ctx, other, "persistent://public/default/other")
			if err := <-acted; err != nil {
				t.Fatal(err)
			}
			stored := answered.wait()
			_, err = client.Produce(ctx, name.String())
			var refusal *wireclient.ServerError
			if terminated := errors.As(err, &refusal) && refusal.Code == pulsarproto.ServerError_TopicTerminatedError; terminated != (what == "terminate") || err != nil && !terminated {
				t.Fatalf("the connection is told %v", err)
			}
			if what == "delete" {
				return
			}
			got := readAll(t, ctx, other, name.String(), len(stored))
			slices.Sort(stored)
			slices.Sort(got)
			if !slices.Equal(got, stored) {
				t.Fatalf("%d messages were answered, %d are stored", len(stored), len(got))
			}
		})
	}
}

// receipts gathers what was answered with success.
type receipts struct {
	waiting sync.WaitGroup
	mu      sync.Mutex
	stored  []string
}

func (r *receipts) start(p *wiretopic.Producer, content string) {
	r.waiting.Add(1)
	p.Start(content, nil, func(_ *pulsarproto.MessageIdData, err error) {
		defer r.waiting.Done()
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.stored = append(r.stored, content)
		}
	})
}

func (r *receipts) wait() []string {
	r.waiting.Wait()
	return r.stored
}

// commitOne commits a transaction with one message on topic.
func commitOne(t *testing.T, ctx context.Context, client *wiretopic.Client, topic string) {
	t.Helper()
	producer, err := client.Produce(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, wireclient.AddPartitions(id, topic)); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(ctx, "m", &id); err != nil {
		t.Fatal(err)
	}
	if err := client.End(ctx, id, txn.Commit, ""); err != nil {
		t.Fatal(err)
	}
}

// readAll reads n messages from the beginning, and makes sure that there are no more.
func readAll(t *testing.T, ctx context.Context, client *wiretopic.Client, topic string, n int) []string {
	t.Helper()
	reader, err := client.Reader(ctx, topic, "reader")
	if err != nil {
		t.Fatal(err)
	}
	last, err := reader.LastMessageID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < n {
		m, err := reader.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Content)
		if len(got) == n && (m.ID.GetLedgerId() != last.GetLedgerId() || m.ID.GetEntryId() != last.GetEntryId()) {
			t.Fatalf("last message read %v, last there is %v", m.ID, last)
		}
	}
	return got
}
