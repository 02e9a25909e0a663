package topic

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

var failover = ofType(pulsarproto.CommandSubscribe_Failover)

func atPriority(level int32) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) { cmd.PriorityLevel = &level }
}

func TestFailover(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a-partition-0")
	a := w.subscribe("a-partition-0", "s", failover, named("a"))
	if !<-a.active {
		t.Fatal("the only consumer is not active")
	}
	b := w.subscribe("a-partition-0", "s", failover, named("b"))
	if <-b.active {
		t.Fatal("the second consumer is active")
	}
	at, _ := sendMany(p, 3)
	for _, d := range a.want("m0", "m1", "m2") {
		if d.Partition != 0 {
			t.Fatalf("partition %d, want 0", d.Partition)
		}
	}
	a.ack(at[0])
	b.wantNothing(w, "a-partition-0")
	b.Redeliver(redeliver()) // it is not active, and has nothing
	b.wantNothing(w, "a-partition-0")
	a.Close()
	if !<-b.active {
		t.Fatal("the one that is left is not active")
	}
	b.want("m1", "m2")
}

// TestFailoverSpreads: partition p is served by number p modulo n of the consumers of the best priority, sorted by name.
func TestFailoverSpreads(t *testing.T) {
	w := newWorld(t)
	consumers := []struct {
		name     string
		priority int32
	}{{"aaa", 1}, {"bbb2", 0}, {"bbb1", 0}, {"bbb4", 1}, {"bbb3", 0}}
	for partition := range 9 {
		name := fmt.Sprintf("a-partition-%d", partition)
		for _, c := range consumers {
			w.subscribe(name, "s", failover, named(c.name), atPriority(c.priority))
		}
		if got, want := w.activeOf(name, "s"), fmt.Sprint("bbb", 1+partition%3); got != want {
			t.Errorf("partition %d is with %s, want %s", partition, got, want)
		}
	}
}

func (w *world) activeOf(topic, subscription string) string {
	t := w.topics.loaded(parse(w.t, topic).String())
	name := make(chan string, 1)
	t.ask(func(bool) { name <- t.subscriptions[subscription].active.name })
	return <-name
}

// TestActiveConsumerChange: all are told of a change, a newcomer that changes nothing is told alone.
func TestActiveConsumerChange(t *testing.T) {
	w := newWorld(t)
	b := w.subscribe("a-partition-0", "s", failover, named("b"))
	c := w.subscribe("a-partition-0", "s", failover, named("c"))
	a := w.subscribe("a-partition-0", "s", failover, named("a"))
	w.quiet("a-partition-0")
	for _, told := range []struct {
		of   *testConsumer
		want []bool
	}{{a, []bool{true}}, {b, []bool{true, false}}, {c, []bool{false, false}}} {
		var got []bool
		for len(told.of.active) > 0 {
			got = append(got, <-told.of.active)
		}
		if !slices.Equal(got, told.want) {
			t.Errorf("told %v, want %v", got, told.want)
		}
	}
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// TestFailoverDelay: the new active consumer starts after the delay, at the first message that is unacknowledged then.
func TestFailoverDelay(t *testing.T) {
	now := newClock()
	w := newWorld(t, func(o *Options) { o.FailoverDelay, o.Now = time.Hour, now.Now })
	p := w.produce("a-partition-0")
	b := w.subscribe("a-partition-0", "s", failover, named("b"))
	at, _ := sendMany(p, 3)
	b.want("m0", "m1", "m2") // the first one does not wait
	a := w.subscribe("a-partition-0", "s", failover, named("a"))
	if !<-a.active {
		t.Fatal("a is not active")
	}
	b.ack(at[0])
	a.wantNothing(w, "a-partition-0")
	now.move(time.Hour)
	a.Resume()
	a.want("m1", "m2")
}

// TestFailoverDelayEndsByItself: nobody has to wake the subscription.
func TestFailoverDelayEndsByItself(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.FailoverDelay = time.Millisecond })
	p := w.produce("a-partition-0")
	b := w.subscribe("a-partition-0", "s", failover, named("b"))
	sendMany(p, 1)
	b.want("m0")
	w.subscribe("a-partition-0", "s", failover, named("a")).want("m0")
}

// TestSharedBehindFailover: what the last consumer of a Failover subscription had is given to the first of another type, also
// within the delay of a failover.
func TestSharedBehindFailover(t *testing.T) {
	for _, kind := range []subscribeOption{shared, byKey} {
		w := newWorld(t, func(o *Options) { o.FailoverDelay = time.Hour })
		_, payloads := sendMany(w.produce("a"), 3)
		c := w.subscribe("a", "s", failover, earliest)
		c.want(payloads...)
		c.Close()
		w.subscribe("a", "s", kind).want(payloads...)
	}
}
