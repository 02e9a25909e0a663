package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ended is a transaction that was ended, and the one message that was sent in it.
type ended struct {
	id      txn.ID
	action  txn.Action
	message string
}

// After etcd was restored from a snapshot, ids are not given twice, outcomes older than the snapshot are what they were, as is
// what readers see, and newer transactions are gone with what was sent in them (promise 5).
func TestRestoreFromSnapshot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := newCluster(t, *instancesFlag)
	older := c.endSome(ctx, "older")
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := c.etcd.Save(ctx, path); err != nil {
		t.Fatal(err)
	}
	newer := c.endSome(ctx, "newer")
	for _, i := range c.instances {
		i.Kill()
	}
	if err := c.etcd.Restore(ctx, path); err != nil {
		t.Fatal(err)
	}
	for _, i := range c.instances {
		if err := i.start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	newest := c.endSome(ctx, "newest")
	c.requireLarger(newest, append(older, newer...))
	for _, e := range append(older, newest...) {
		c.requireOutcome(ctx, e)
	}
	for _, e := range newer {
		if err := c.end(ctx, e.id, e.action); codeOf(err) != pulsarproto.ServerError_TransactionNotFound {
			t.Errorf("%s is newer than the snapshot, and its end is answered %v", e.id, err)
		}
	}
	c.requireMessages(ctx, append(older, newest...))
}

const restoredTopic = "persistent://public/default/restored"

// endSome ends ten transactions of each coordinator.
func (c *cluster) endSome(ctx context.Context, name string) []ended {
	c.t.Helper()
	var all []ended
	for tc := range uint64(coordinators) {
		for n := range 10 {
			e := ended{action: txn.Action(n % 2), message: fmt.Sprintf("%s-%d-%d", name, tc, n)}
			if err := c.insist(ctx, func(ctx context.Context) error { return c.endOne(ctx, tc, &e) }); err != nil {
				c.t.Fatalf("%s: %v", e.message, err)
			}
			all = append(all, e)
		}
	}
	return all
}

// insist tries until there is no error. What an earlier process had is free when its lease has run out.
func (c *cluster) insist(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, servedTime)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func (c *cluster) endOne(ctx context.Context, tc uint64, e *ended) (err error) {
	router := wiretopic.NewRouter(c.instances[0].clients.Addr())
	defer func() { err = errors.Join(err, router.Close()) }()
	producer, err := router.Produce(ctx, restoredTopic)
	if err != nil {
		return err
	}
	client, err := router.Coordinator(ctx, tc)
	if err != nil {
		return err
	}
	if e.id, err = client.Begin(ctx, tc, 60_000, ""); err != nil {
		return err
	}
	if _, err = producer.Send(ctx, e.message, &e.id); err != nil {
		return err
	}
	return client.End(ctx, e.id, e.action, "")
}

func (c *cluster) end(ctx context.Context, id txn.ID, action txn.Action) (err error) {
	conn, err := wireclient.DialTC(ctx, "pulsar://"+c.instances[0].clients.Addr(), id.Most)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.End(ctx, id, action, "")
}

func codeOf(err error) pulsarproto.ServerError {
	var refused *wireclient.ServerError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return pulsarproto.ServerError_UnknownError
}

// requireLarger wants each id to be larger than those of the same coordinator before.
func (c *cluster) requireLarger(later, before []ended) {
	c.t.Helper()
	largest := map[uint64]uint64{}
	for _, e := range before {
		largest[e.id.Most] = max(largest[e.id.Most], e.id.Least)
	}
	for _, e := range later {
		if e.id.Least <= largest[e.id.Most] {
			c.t.Errorf("%s is given when %d had been given", e.id, largest[e.id.Most])
		}
	}
}

func (c *cluster) requireOutcome(ctx context.Context, e ended) {
	c.t.Helper()
	if err := c.end(ctx, e.id, e.action); err != nil {
		c.t.Errorf("%s: %s again is answered %v", e.id, e.action, err)
	}
	if err := c.end(ctx, e.id, 1-e.action); codeOf(err) != pulsarproto.ServerError_InvalidTxnStatus {
		c.t.Errorf("%s: the contrary of %s is answered %v", e.id, e.action, err)
	}
}

// requireMessages wants readers to see the messages of those that are committed, and no others.
func (c *cluster) requireMessages(ctx context.Context, all []ended) {
	c.t.Helper()
	router := wiretopic.NewRouter(c.instances[0].clients.Addr())
	defer func() { _ = router.Close() }()
	producer, err := router.Produce(ctx, restoredTopic)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := producer.Send(ctx, "end", nil); err != nil {
		c.t.Fatal(err)
	}
	client, err := router.Topic(ctx, restoredTopic)
	if err != nil {
		c.t.Fatal(err)
	}
	reader, err := client.Reader(ctx, restoredTopic, "reader")
	if err != nil {
		c.t.Fatal(err)
	}
	seen := map[string]int{}
	for {
		m, err := reader.Receive(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		if m.Content == "end" {
			break
		}
		seen[m.Content]++
	}
	for _, e := range all {
		want := 0
		if e.action == txn.Commit {
			want = 1
		}
		if seen[e.message] != want {
			c.t.Errorf("%s of %s, %s: seen %d times", e.message, e.id, e.action, seen[e.message])
		}
		delete(seen, e.message)
	}
	for message := range seen {
		c.t.Errorf("%s is seen", message)
	}
}
