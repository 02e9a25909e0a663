package topic

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// policyWorld is a world whose clock and policies a test changes.
type policyWorld struct {
	*world
	pass func(time.Duration)

	mu       sync.Mutex
	policies Policies
}

func newPolicyWorld(t *testing.T) *policyWorld {
	p := &policyWorld{}
	now := time.UnixMilli(1_700_000_000_000)
	p.world = newWorld(t, func(o *Options) {
		o.Now = func() time.Time {
			p.mu.Lock()
			defer p.mu.Unlock()
			return now
		}
		o.Policies = func(topicname.Name) Policies {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.policies
		}
	})
	p.pass = func(d time.Duration) {
		p.settle()
		p.mu.Lock()
		now = now.Add(d)
		p.mu.Unlock()
		p.settle()
	}
	return p
}

func (p *policyWorld) set(policies Policies) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.policies = policies
}

// settle lets all topics look at the time until nothing that this began runs.
func (p *policyWorld) settle() {
	p.t.Helper()
	p.tickAll()
	for _, t := range p.topics.all() {
		eventually(p.t, "topic has done what the time wants", func() bool {
			still := make(chan bool, 1)
			t.ask(func(alive bool) {
				still <- alive && (t.trim.running || t.trim.looking || t.expiring || t.aging || t.deleting || t.writing != nil || !t.queue.empty())
			})
			return !<-still
		})
	}
}

func (p *policyWorld) stats(name, subscription string) (*TopicStats, SubscriptionStats) {
	p.t.Helper()
	stats, err := p.topics.TopicStats(context.Background(), parse(p.t, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return stats, stats.Subscriptions[subscription]
}

// TestMessageTTL: old messages count as acknowledged, also after a restart, and the young ones stay.
func TestMessageTTL(t *testing.T) {
	w := newPolicyWorld(t)
	w.set(Policies{MessageTTL: time.Hour})
	w.subscribe("t", "s").Close()
	p := w.produce("t")
	p.send(message(0, "old"))
	w.pass(30 * time.Minute)
	p.send(message(1, "young"))
	w.pass(40 * time.Minute)
	w.settle()
	if _, s := w.stats("t", "s"); s.MsgBacklog != 1 {
		t.Fatalf("backlog of %d, want the young message", s.MsgBacklog)
	}
	w.restart()
	w.subscribe("t", "s").want("young")
}

// TestExpiryReachesUnloadedTopics: a topic that left memory is loaded for what expires in it.
func TestExpiryReachesUnloadedTopics(t *testing.T) {
	w := newPolicyWorld(t)
	w.set(Policies{MessageTTL: time.Hour, SubscriptionExpiration: 3 * time.Hour})
	w.subscribe("t", "s").Close()
	p := w.produce("t")
	p.send(message(0, "old"))
	p.Close()
	w.pass(2 * time.Minute)
	w.pass(2 * time.Minute)
	if w.isLoaded("t") {
		t.Fatal("still loaded")
	}
	w.pass(2 * time.Hour)
	w.topics.revisit()
	w.settle()
	if _, s := w.stats("t", "s"); s.MsgBacklog != 0 {
		t.Fatalf("backlog of %d", s.MsgBacklog)
	}
	w.pass(2 * time.Minute)
	w.pass(time.Hour)
	w.topics.revisit()
	w.settle()
	if names, err := w.topics.Subscriptions(context.Background(), parse(t, "t")); err != nil || len(names) != 0 {
		t.Fatalf("subscriptions %q, %v", names, err)
	}
}

// TestRetention: acknowledged messages go when they are beyond the time or beyond the size that is retained.
func TestRetention(t *testing.T) {
	large := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct {
		policies Policies
		left     int64 // blocks of 6, three of them older than an hour
	}{
		"nothing is retained":    {Policies{}, 0},
		"time":                   {Policies{RetentionTime: time.Hour, RetentionBytes: -1}, 3},
		"size":                   {Policies{RetentionTime: -1, RetentionBytes: 1200}, 2},
		"the smaller of both":    {Policies{RetentionTime: time.Hour, RetentionBytes: 1200}, 2},
		"everything is retained": {Policies{RetentionTime: -1, RetentionBytes: -1}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPolicyWorld(t)
			w.set(tt.policies)
			c, p := w.subscribe("t", "s"), w.produce("t")
			for i := range uint64(6) {
				if i == 3 {
					w.pass(50 * time.Minute)
				}
				at := p.send(message(i, large))
				c.want(large)
				c.ack(at)
			}
			w.pass(time.Minute)
			w.pass(14 * time.Minute)
			w.settle()
			if n := w.keysUnder(w.space("t").EntryPrefix()); n != tt.left {
				t.Fatalf("%d blocks, want %d", n, tt.left)
			}
		})
	}
}

// TestBacklogQuota: producers are blocked while the backlog is too large or too old, in the way that the policy says, or the
// oldest messages go.
func TestBacklogQuota(t *testing.T) {
	large := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct {
		policies Policies
		want     error // to a producer that comes again
	}{
		"hold by size":      {Policies{BacklogBytes: 5000}, ErrQuotaExceeded},
		"exception by size": {Policies{BacklogBytes: 5000, BacklogPolicy: ProducerException}, ErrQuotaException},
		"hold by age":       {Policies{BacklogAge: time.Minute}, ErrQuotaExceeded},
		"exception by age":  {Policies{BacklogAge: time.Minute, BacklogPolicy: ProducerException}, ErrQuotaException},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPolicyWorld(t)
			w.set(tt.policies)
			c, p := w.subscribe("t", "s"), w.produce("t")
			for i := range uint64(3) {
				c.ack(p.send(message(i, large)))
			}
			w.pass(2 * time.Minute)
			for i := range uint64(10) {
				p.send(message(3+i, large))
			}
			w.settle()
			if tt.policies.BacklogAge > 0 {
				w.pass(2 * time.Minute)
			}
			happens(t, p.disconnected)
			if _, err := w.tryProduce("t", &pulsarproto.CommandProducer{}); !errors.Is(err, tt.want) {
				t.Fatalf("a producer came: %v, want %v", err, tt.want)
			}
			if err := w.topics.SkipAll(context.Background(), parse(t, "t"), "s"); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.produce("t").send(message(100, "again"))
		})
	}
}

func TestBacklogEviction(t *testing.T) {
	large := strings.Repeat("x", 1000)
	w := newPolicyWorld(t)
	w.set(Policies{BacklogBytes: 5000, BacklogPolicy: ConsumerBacklogEviction})
	slow, fast := w.subscribe("t", "slow"), w.subscribe("t", "fast")
	slow.Close()
	p := w.produce("t")
	for i := range uint64(10) {
		fast.ack(p.send(message(i, large)))
	}
	w.settle()
	stats, s := w.stats("t", "slow")
	if s.MsgBacklog != 4 && s.MsgBacklog != 5 || stats.BacklogSize > 5000 {
		t.Fatalf("backlog of %d messages, %d bytes, want 90 %% of the quota", s.MsgBacklog, stats.BacklogSize)
	}
	p.send(message(10, "go on"))
}

// TestInactiveTopics: a topic that nobody uses goes, but never with an entry that somebody may still want.
func TestInactiveTopics(t *testing.T) {
	inactive := Policies{DeleteInactive: true, InactiveAfter: time.Minute}
	caughtUp := inactive
	caughtUp.DeleteCaughtUp = true
	never := Policies{InactiveAfter: time.Minute}
	used := func(w *policyWorld, acks bool) {
		c, p := w.subscribe("t", "s"), w.produce("t")
		at := p.send(message(0, "m"))
		if acks {
			c.ack(at)
		}
		c.Close()
		p.Close()
	}
	for name, tt := range map[string]struct {
		policies Policies
		use      func(w *policyWorld)
		stays    bool
	}{
		"empty":                         {inactive, func(w *policyWorld) { w.produce("t").Close() }, false},
		"off":                           {never, func(w *policyWorld) { w.produce("t").Close() }, true},
		"with a producer":               {inactive, func(w *policyWorld) { w.produce("t") }, true},
		"with entries":                  {inactive, func(w *policyWorld) { p := w.produce("t"); p.send(message(0, "m")); p.Close() }, true},
		"with a subscription":           {inactive, func(w *policyWorld) { used(w, true) }, true},
		"subscriptions caught up":       {caughtUp, func(w *policyWorld) { used(w, true) }, false},
		"subscriptions not caught up":   {caughtUp, func(w *policyWorld) { used(w, false) }, true},
		"open transaction, no messages": {inactive, func(w *policyWorld) { p := w.produce("t"); p.send(inTxn(w.coord.begin(), message(0, "m"))); p.Close() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPolicyWorld(t)
			w.set(tt.policies)
			tt.use(w)
			w.pass(30 * time.Second)
			w.pass(61 * time.Second)
			w.settle()
			exists, err := w.topics.TopicExists(context.Background(), parse(t, "t"))
			if err != nil || exists != tt.stays {
				t.Fatalf("exists: %v, %v", exists, err)
			}
		})
	}
}

// TestInactiveAfterRetention: what held a topic back is deleted in time, and then the topic.
func TestInactiveAfterRetention(t *testing.T) {
	w := newPolicyWorld(t)
	w.set(Policies{DeleteInactive: true, InactiveAfter: time.Minute})
	p := w.produce("t")
	p.send(message(0, "m"))
	p.Close()
	w.pass(2 * time.Minute)
	for range 4 {
		w.pass(11 * time.Minute)
		w.topics.revisit()
	}
	eventually(t, "topic is gone", func() bool {
		w.settle()
		exists, err := w.topics.TopicExists(context.Background(), parse(t, "t"))
		return err == nil && !exists
	})
}

// TestSkippedMessagesAreNotCounted: no count of redeliveries is kept of what was skipped or has expired.
func TestSkippedMessagesAreNotCounted(t *testing.T) {
	w := newWorld(t)
	at, payloads := sendMany(w.produce("a"), 3)
	c := w.subscribe("a", "s", earliest, shared)
	c.want(payloads...)
	c.Redeliver(redeliver(at...))
	c.want(payloads...)
	if err := w.topics.SkipMessages(context.Background(), parse(t, "a"), "s", 2); err != nil {
		t.Fatal(err)
	}
	topic, counts := w.topics.loaded(parse(t, "a").String()), make(chan int, 1)
	topic.ask(func(bool) { counts <- len(topic.subscriptions["s"].redelivered) })
	if n := <-counts; n != 1 {
		t.Errorf("%d counts, want that of the one that is left", n)
	}
}
