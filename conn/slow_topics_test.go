package conn

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	between "github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// An instance on which thousands of topics are slow to end transactions answers for others all the same, and is not taken for dead.
func TestInstanceWithManySlowTopics(t *testing.T) {
	const slow = 4000
	secret := between.Secret(strings.Repeat("s", 32))
	bench := newBench(t, Options{})
	release := make(chan struct{})
	bench.topics.endTxn = func(p txn.Participant, _ txn.Action, _ uint64, done func(error)) {
		if !strings.Contains(p.Topic, "slow") {
			done(nil)
			return
		}
		go func() {
			<-release
			done(nil)
		}()
	}
	server := NewServer(Options{Instances: between.Door{Self: "b", Secret: secret}, Version: "x", Log: zerolog.Nop()}, bench.services)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	pool := between.New(between.Options{Self: "a", Secret: secret, Version: "x", KeepAlive: time.Second, Log: zerolog.Nop()})
	t.Cleanup(func() {
		pool.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	other := cluster.Instance{ID: "b", ServiceURL: "pulsar://" + listener.Addr().String()}
	end := func(topic string) <-chan error {
		answer := make(chan error, 1)
		at := txn.Participant{Topic: "persistent://public/default/" + topic}
		pool.EndOnParticipant(t.Context(), other, txn.ID{Least: 1}, at, txn.Commit, 0, func(err error) { answer <- err })
		return answer
	}
	var all []<-chan error
	for i := range slow {
		all = append(all, end(fmt.Sprint("slow-", i)))
	}
	if err := <-end("fine"); err != nil {
		t.Errorf("a topic that is not slow: %v", err)
	}
	close(release)
	for _, answer := range all {
		if err := <-answer; err != nil {
			t.Fatalf("a slow topic: %v", err)
		}
	}
}
