package topic

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestTopicStats: what the admin API shows, after real use and after a restart.
func TestTopicStats(t *testing.T) {
	w := newPolicyWorld(t)
	if err := w.topics.CreateTopic(context.Background(), parse(t, "t"), map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	p, c := w.produceAs("t", "p"), w.subscribe("t", "s", shared)
	at := p.send(message(0, "0123456789"))
	p.send(batchOf(5, message(1, "batch")))
	p.send(inTxn(w.coord.begin(), message(6, "open")))
	c.want("0123456789", "batch")
	c.ack(at)
	w.pass(time.Minute)
	stats, s := w.stats("t", "s")
	if stats.MsgInCounter != 7 || stats.BytesInCounter != 19 || stats.MsgOutCounter != 6 || stats.MsgRateIn != 7.0/60 || stats.OngoingTxnCount != 1 {
		t.Errorf("counters of %+v", stats)
	}
	if stats.StorageSize == 0 || stats.BacklogSize == 0 || stats.BacklogSize >= stats.StorageSize {
		t.Errorf("storage %d, backlog %d", stats.StorageSize, stats.BacklogSize)
	}
	if stats.TopicCreationTimeStamp != 1_700_000_000_000 || stats.LastPublishTimeStamp != 1_700_000_000_000 {
		t.Errorf("created %d, published %d", stats.TopicCreationTimeStamp, stats.LastPublishTimeStamp)
	}
	if len(stats.Publishers) != 1 || stats.Publishers[0].ProducerName != "p" || stats.Publishers[0].AverageMsgSize != 19.0/7 {
		t.Errorf("publishers %+v", stats.Publishers)
	}
	if s.Type != "Shared" || s.MsgBacklog != 2 || s.UnackedMessages != 5 || len(s.Consumers) != 1 || s.MsgOutCounter != 6 {
		t.Errorf("subscription %+v", s)
	}
	if _, err := json.Marshal(stats); err != nil {
		t.Error(err)
	}
	storage := stats.StorageSize
	w.restart()
	stats, s = w.stats("t", "s")
	if stats.StorageSize != storage || s.MsgBacklog != 2 || s.Type != "None" || stats.MsgInCounter != 0 {
		t.Errorf("after a restart %+v", stats)
	}
	if internal, err := w.topics.InternalStats(context.Background(), parse(t, "t")); err != nil || internal.NumberOfEntries != 3 || len(internal.Ledgers) != 2 {
		t.Errorf("internal stats %+v, %v", internal, err)
	}
	if _, err := w.topics.TopicStats(context.Background(), parse(t, "none")); !errors.Is(err, ErrTopicNotFound) {
		t.Errorf("stats of nothing: %v", err)
	}
}

// The position before the first entry is ledger:-1, as clients of the admin REST know it from Pulsar.
func TestInternalStatsOfNothing(t *testing.T) {
	w := newWorld(t)
	w.subscribe("t", "s")
	internal, err := w.topics.InternalStats(context.Background(), parse(t, "t"))
	if err != nil {
		t.Fatal(err)
	}
	if at := internal.Cursors["s"].MarkDeletePosition; !strings.HasSuffix(at, ":-1") {
		t.Errorf("mark delete position %q, want one before the first entry", at)
	}
	if internal.LastConfirmedEntry != "-1:-1" {
		t.Errorf("last confirmed entry %q, want -1:-1", internal.LastConfirmedEntry)
	}
}

// TestReadForAdministrators: entries by position and from the backlog, and only what consumers may read.
func TestReadForAdministrators(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	p, c := w.produce("t"), w.subscribe("t", "s")
	at, _ := sendMany(p, 5)
	open := p.send(inTxn(w.coord.begin(), message(10, "open")))
	c.ack(at[0], at[2])
	for i, want := range at {
		got, err := w.topics.Entry(ctx, name, want.Ledger, want.Entry)
		if err != nil || string(got.Payload) != []string{"m0", "m1", "m2", "m3", "m4"}[i] || got.ID.GetEntryId() != want.Entry {
			t.Fatalf("entry %v: %v, %v", want, got, err)
		}
	}
	for _, entry := range []uint64{open.Entry, 99} {
		if _, err := w.topics.Entry(ctx, name, open.Ledger, entry); !errors.Is(err, ErrMessageNotFound) {
			t.Fatalf("entry %d: %v", entry, err)
		}
	}
	for n, want := range map[int]string{1: "m1", 2: "m3", 3: "m4"} {
		if got, err := w.topics.PeekMessages(ctx, name, "s", n); err != nil || string(got.Payload) != want {
			t.Fatalf("message %d of the backlog: %v, %v", n, got, err)
		}
	}
	if _, err := w.topics.PeekMessages(ctx, name, "s", 4); !errors.Is(err, ErrMessageNotFound) {
		t.Fatalf("beyond the backlog: %v", err)
	}
	if _, err := w.topics.PeekMessages(ctx, name, "none", 1); !errors.Is(err, ErrSubscriptionNotFound) {
		t.Fatalf("no subscription: %v", err)
	}
	if last, err := w.topics.LastMessageID(ctx, name); err != nil || last.GetEntryId() != at[4].Entry {
		t.Fatalf("last message %v, %v", last, err)
	}
}

// TestSubscriptionsOfAdministrators: create, reset, skip, expire and delete, durable each.
func TestSubscriptionsOfAdministrators(t *testing.T) {
	w := newPolicyWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	at, _ := sendMany(w.produce("t"), 5)
	third := &pulsarproto.MessageIdData{LedgerId: &at[2].Ledger, EntryId: &at[2].Entry}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	backlog := func(want uint64) {
		t.Helper()
		w.restart()
		if _, s := w.stats("t", "s"); s.MsgBacklog != want {
			t.Fatalf("backlog of %d, want %d", s.MsgBacklog, want)
		}
	}
	must(w.topics.CreateSubscription(ctx, name, "s", third))
	backlog(3)
	if err := w.topics.CreateSubscription(ctx, name, "s", nil); !errors.Is(err, ErrSubscriptionExists) {
		t.Fatalf("made twice: %v", err)
	}
	must(w.topics.CreateSubscription(ctx, name, "latest", nil))
	must(w.topics.ResetCursor(ctx, name, "s", third, true))
	backlog(2)
	must(w.topics.ResetCursorToTime(ctx, name, "s", 0))
	backlog(5)
	must(w.topics.SkipMessages(ctx, name, "s", 2))
	backlog(3)
	must(w.topics.ExpireMessages(ctx, name, "s", time.Hour))
	backlog(3)
	w.pass(2 * time.Hour)
	must(w.topics.ExpireMessages(ctx, name, "s", time.Hour))
	backlog(0)
	must(w.topics.ResetCursor(ctx, name, "s", third, false))
	must(w.topics.SkipAll(ctx, name, "s"))
	backlog(0)
	c := w.subscribe("t", "s")
	if err := w.topics.DeleteSubscription(ctx, name, "s", false); !errors.Is(err, ErrSubscriptionBusy) {
		t.Fatalf("deleted with a consumer: %v", err)
	}
	must(w.topics.DeleteSubscription(ctx, name, "s", true))
	happens(t, c.disconnected)
	if names, err := w.topics.Subscriptions(ctx, name); err != nil || len(names) != 1 || names[0] != "latest" {
		t.Fatalf("subscriptions %q, %v", names, err)
	}
}

// TestPartitionsGrow: a new partition has the subscriptions of the others, so no message goes past a consumer that does not know
// it yet.
func TestPartitionsGrow(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "p")
	if err := w.topics.CreatePartitioned(ctx, name, 1, map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	w.subscribe("p-partition-0", "s")
	w.subscribe("p-partition-0", "reader", nonDurable)
	for _, n := range []int{0, 1, w.topics.MaxPartitions() + 1} {
		if err := w.topics.UpdatePartitions(ctx, name, n); !errors.Is(err, txn.ErrNotAllowed) {
			t.Fatalf("%d partitions: %v", n, err)
		}
	}
	if err := w.topics.UpdatePartitions(ctx, name, 3); err != nil {
		t.Fatal(err)
	}
	if err := w.topics.UpdateProperties(ctx, name, map[string]string{"l": "w"}, "k"); err != nil {
		t.Fatal(err)
	}
	w.restart()
	n, properties, err := w.topics.PartitionedMetadata(ctx, name)
	if err != nil || n != 3 || len(properties) != 1 || properties["l"] != "w" {
		t.Fatalf("%d partitions, %v, %v", n, properties, err)
	}
	w.produce("p-partition-2").send(message(0, "early"))
	w.subscribe("p-partition-2", "s").want("early")
	if names, err := w.topics.Subscriptions(ctx, name.WithPartition(1)); err != nil || len(names) != 1 {
		t.Fatalf("subscriptions %q, %v", names, err)
	}
}
