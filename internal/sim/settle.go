package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// createTopics waits for the instances and makes what the clients use.
func (w *world) createTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	for _, i := range w.instances {
		<-i.current().serves
	}
	p := w.instances[0].current()
	for _, name := range w.topics {
		if err := p.topics.CreateTopic(ctx, parsed(name), nil); err != nil {
			w.fail("a topic cannot be created", err.Error())
			return
		}
		w.nameKeys(name)
		to := w.ownerOf(name, "create "+name)
		if err := to.topics.CreateSubscription(ctx, parsed(name), subscription, nil); err != nil {
			w.fail("a subscription cannot be created", err.Error())
			return
		}
	}
}

// nameKeys notes the keys of a topic that was created.
func (w *world) nameKeys(name string) {
	for _, kv := range w.store.Contents(w.space.AllTopicNames()) {
		if !strings.HasSuffix(kv.Key, "/"+parsed(name).Local) {
			continue
		}
		keys := w.space.Topic(uint64(kv.CreateRevision))
		w.ownerKeys[name] = keys.Owner()
		if name == w.doomed() {
			w.doomedPrefix = keys.Prefix()
		}
	}
}

// askOutcomes asks for the end of every transaction until there is a definite answer.
func (w *world) askOutcomes() {
	c := newClient(w, 0)
	for n, id := range w.history.Transactions() {
		action := txn.Action(w.chance.below(3, "asked in the end", fmt.Sprint(n)) / 2)
		for !c.end(id, action, true) {
			if !c.sleep(200 * time.Millisecond) {
				return
			}
		}
	}
	c.hangUp()
}

// awaitRest waits until no transaction lives and nothing is left of any in the store.
func (w *world) awaitRest() {
	c := newClient(w, -1)
	for c.sleep(500*time.Millisecond) && !w.atRest() {
	}
}

func (w *world) atRest() bool {
	if !w.allRun() {
		return false
	}
	for tc := range uint64(w.mix.coordinators) {
		p := w.leaderOf(tc, "rest")
		if p == nil {
			return false
		}
		if status := p.group.Statuses()[tc]; !status.Serving || status.Live > 0 {
			return false
		}
	}
	return w.leftover() == ""
}

// allRun reports whether every instance has a process that is not on its way out.
func (w *world) allRun() bool {
	for _, i := range w.instances {
		p := i.current()
		p.state.Lock()
		stopped := p.isStopped
		p.state.Unlock()
		if stopped || !p.takesRequests() {
			return false
		}
	}
	return true
}

// leftover is a key that only an unresolved transaction has; empty: there is none.
func (w *world) leftover() string {
	for _, kv := range w.store.Contents(w.space.Root()) {
		key := strings.TrimPrefix(kv.Key, w.space.Root())
		if w.isDoomed(kv.Key) {
			continue
		}
		if strings.HasPrefix(key, "tc/") && strings.Contains(key, "/open/") {
			return key
		}
	}
	return w.firstUnresolved(func(key string) bool { return strings.Contains(key, "/m/txn/") || strings.Contains(key, "/pending/") })
}

// isDoomed tells keys of the topic of which nothing is expected.
func (w *world) isDoomed(key string) bool { return strings.HasPrefix(key, w.doomedPrefix) }

// readAll reads every topic and what is left of every subscription.
func (w *world) readAll() {
	for _, c := range w.clients {
		c.hangUp()
	}
	c := newClient(w, 0)
	for !w.read(c) && !w.isOver() {
		c.hangUp()
	}
	c.hangUp()
}

// read reads everything once. It reports false if an instance disconnected a consumer meanwhile.
func (w *world) read(c *client) bool {
	topics := w.topics[:len(w.topics)-1]
	var readers, rests []*consumer
	for _, topic := range topics {
		readers = append(readers, c.attachFinally(topic, &pulsarproto.CommandSubscribe{
			Topic: &topic, Subscription: ptr("reader"), SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(), ConsumerId: new(uint64),
			Durable: ptr(false), InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
		}))
		rests = append(rests, c.attachFinally(topic, &pulsarproto.CommandSubscribe{
			Topic: &topic, Subscription: ptr(subscription), SubType: pulsarproto.CommandSubscribe_Shared.Enum(), ConsumerId: new(uint64),
		}))
	}
	visits := c.attachVisits()
	all := slices.Concat(readers, rests, visits)
	if slices.Contains(all, nil) || !c.awaitQuiet(all) || slices.ContainsFunc(all, (*consumer).isGone) {
		return false
	}
	final := map[string][]string{}
	for i, topic := range topics {
		final[topic] = readers[i].keys()
		w.history.Read(topic, final[topic])
		w.history.Left(topic, subscription, rests[i].keys())
	}
	w.recordVisits(visits)
	w.checkSightings(final)
	return true
}

// attachFinally subscribes until it succeeds; nil if the simulation ends before.
func (c *client) attachFinally(topic string, command *pulsarproto.CommandSubscribe) *consumer {
	for {
		if consumer, err := c.consume(topic, command); err == nil {
			return consumer
		}
		c.hangUp() // an attempt that was not answered may have attached one
		if !c.sleep(200 * time.Millisecond) {
			return nil
		}
	}
}

// quiet is longer than a topic waits for one answer of the store.
const quiet = 11 * time.Second

// awaitQuiet waits until nothing comes any more. It reports false if the simulation ends before.
func (c *client) awaitQuiet(consumers []*consumer) bool {
	for {
		before := arrived(consumers)
		if !c.sleep(quiet) {
			return false
		}
		if arrived(consumers) == before {
			return true
		}
	}
}

func arrived(consumers []*consumer) int {
	n := 0
	for _, c := range consumers {
		n += len(c.keys())
	}
	return n
}

// hangUp cuts all connections of the client.
func (c *client) hangUp() {
	for _, l := range c.sortedLinks() {
		l.breakUp()
	}
}

func (c *client) sortedLinks() []*link {
	var all []*link
	for _, l := range c.links {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *link) int { return strings.Compare(a.name, b.name) })
	return all
}

// checkAll holds the whole history against the promises.
func (w *world) checkAll() {
	w.history.Live(nil)
	if w.mix.jumps {
		w.history.Skew(clockJump)
	}
	w.mu.Lock()
	for _, d := range w.decisions {
		w.history.Told(*d)
	}
	w.mu.Unlock()
	for _, a := range w.history.Check() {
		w.fail(string(a.Kind), a.String())
		return
	}
}
