package crashpoint

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// topics are the two that are sent to and the one with the subscription.
var topics = [participantCount]string{
	"persistent://public/default/a", "persistent://public/default/b", "persistent://public/default/s",
}

const (
	subscriptionName = "sub"
	readerName       = "reader"
	// attachPause is between two attempts to attach.
	attachPause = 500 * time.Millisecond
)

func nameOf(place int) topicname.Name {
	_, local, _ := strings.Cut(topics[place], "public/default/")
	return topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: local}
}

func participants() [participantCount]txn.Participant {
	return [participantCount]txn.Participant{
		{Topic: topics[firstTopic]}, {Topic: topics[secondTopic]},
		{Topic: topics[subscription], Subscription: subscriptionName, Kind: txn.AckedSubscription},
	}
}

// key is that of the message of a transaction on a topic, or of the one that it acknowledges.
func key(transaction, place int) string { return fmt.Sprintf("%d%c", transaction, "abs"[place]) }

// clients are the producers and consumers of the process that has the topics, made again when it is another one.
type clients struct {
	topics    func() *process // nil while it is being replaced
	history   *history.History
	kind      pulsarproto.CommandSubscribe_SubType // of the subscription
	attaching chan struct{}                        // has a token while ends are being attached; a mutex would stop the clock

	mu     sync.Mutex // guards the following
	ends   ends
	at     map[string]ledger.Position // of the messages of the subscription
	left   map[string]bool            // what the subscription has delivered since it was attached
	read   [participantCount][]string // what the newest reader of each topic got
	closed bool
}

// ends are those of one process; nil: not attached.
type ends struct {
	producers [participantCount]*producer
	readers   [participantCount]*consumer // one a topic, from the earliest message on
	acker     *consumer
}

func (e *ends) complete() bool {
	for place := range topics {
		if e.producers[place] == nil || e.readers[place] == nil {
			return false
		}
	}
	return e.acker != nil
}

func newClients(topics func() *process, h *history.History, cumulative bool) *clients {
	kind := pulsarproto.CommandSubscribe_Shared
	if cumulative {
		kind = pulsarproto.CommandSubscribe_Exclusive // a shared one takes no cumulative acknowledgements
	}
	return &clients{topics: topics, history: h, kind: kind, attaching: make(chan struct{}, 1), at: map[string]ledger.Position{}}
}

// forget drops all ends, when their process dies.
func (c *clients) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = ends{}
}

// close stops attaching.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *clients) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// producer and consumer return nil while there is none.
func (c *clients) producer(place int) *producer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.producers[place]
}

func (c *clients) consumer() *consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.acker
}

func (c *clients) position(key string) ledger.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[key]
}

// attach attaches a reader and a producer to each topic and the consumer to the subscription, those that are missing, one after
// the other, until it has or the clients are closed.
func (c *clients) attach() {
	c.attaching <- struct{}{}
	defer func() { <-c.attaching }()
	for ; !c.isClosed(); time.Sleep(attachPause) {
		process := c.topics()
		if process == nil {
			continue
		}
		for place := range topics {
			c.attachReader(process, place)
			c.attachProducer(process, place)
		}
		c.attachAcker(process)
		c.mu.Lock()
		complete := c.ends.complete()
		c.mu.Unlock()
		if complete {
			return
		}
	}
}

func (c *clients) attachProducer(process *process, place int) {
	p := &producer{process: process, waiting: map[uint64]func(error){}}
	slot := &c.ends.producers[place]
	p.gone = func() { lose(c, slot, p) }
	attach(c, process, slot, p, func(ctx context.Context) (err error) {
		p.topic, _, err = process.topics.Produce(ctx, nameOf(place), caller, &pulsarproto.CommandProducer{Topic: &topics[place]}, p)
		return err
	}, func() {})
}

func (c *clients) attachReader(process *process, place int) {
	var keys []string
	r := &consumer{process: process}
	slot := &c.ends.readers[place]
	r.gone = func() { lose(c, slot, r) }
	r.got = func(key string, _ ledger.Position) {
		c.history.Delivered(history.Delivery{Client: readerName, Topic: topics[place], Key: key, At: c.history.Now()})
		c.mu.Lock()
		defer c.mu.Unlock()
		keys = append(keys, key)
		if *slot == r {
			c.read[place] = keys
		}
	}
	attach(c, process, slot, r, r.subscribe(place, readerName, pulsarproto.CommandSubscribe_Exclusive, false), func() { c.read[place] = keys })
}

func (c *clients) attachAcker(process *process) {
	left := map[string]bool{}
	a := &consumer{process: process}
	slot := &c.ends.acker
	a.gone = func() { lose(c, slot, a) }
	a.got = func(key string, at ledger.Position) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.at[key] = at
		left[key] = true
	}
	attach(c, process, slot, a, a.subscribe(subscription, subscriptionName, c.kind, true), func() { c.left = left })
}

// attach has begin attach an end, and notes it if the process has still the topics then. slot is guarded by c.mu.
func attach[T interface {
	comparable
	start()
	isGone() bool
}](c *clients, process *process, slot *T, end T, begin func(context.Context) error, note func()) {
	var none T
	c.mu.Lock()
	attached := *slot != none
	c.mu.Unlock()
	if attached {
		return
	}
	_, err := wait(process, func(ctx context.Context) (struct{}, error) { return struct{}{}, begin(ctx) })
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if process != c.topics() || end.isGone() {
		return
	}
	*slot = end
	note()
	end.start()
}

// lose empties the slot of an end that its topic has closed, and attaches again.
func lose[T comparable](c *clients, slot *T, end T) {
	var none T
	c.mu.Lock()
	was := *slot == end
	if was {
		*slot = none
	}
	c.mu.Unlock()
	if was {
		go c.attach()
	}
}

// wait reaches a process, when it has started, and waits for its answer.
func wait[T any](p *process, ask func(context.Context) (T, error)) (T, error) {
	<-p.started
	type result struct {
		value T
		err   error
	}
	answers := make(chan result, 1)
	reach(p, func(answer func(T, error)) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			answer(ask(ctx))
		}()
	}, func(value T, err error) { answers <- result{value, err} })
	r := <-answers
	return r.value, r.err
}
