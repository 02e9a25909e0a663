package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// sighting is what one reader saw of a topic from its beginning on, in order.
type sighting struct {
	reader, topic string
	keys          []string
}

// watchTopics reads topics from the beginning, one after the other, until the clients are done. Each is read until the reader is
// disconnected or has seen enough.
func (c *client) watchTopics(done <-chan struct{}) {
	w := c.world
	for n := 0; ; n++ {
		label := c.name + " reads " + strconv.Itoa(n)
		select {
		case <-done:
			return
		default:
		}
		if !c.sleep(time.Duration(w.chance.below(2000, "pause", label)) * time.Millisecond) {
			return
		}
		if !w.incident("read", label) {
			continue
		}
		topic := w.topics[w.chance.below(len(w.topics)-1, "topic", label)]
		reader, err := c.consume(topic, &pulsarproto.CommandSubscribe{
			Topic: &topic, Subscription: ptr(label), SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(), ConsumerId: new(uint64),
			Durable: ptr(false), InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
		})
		if err != nil {
			continue
		}
		enough := time.Now().Add(time.Duration(w.chance.below(5000, "enough", label)) * time.Millisecond)
		for time.Now().Before(enough) && !reader.isGone() && c.sleep(100*time.Millisecond) {
		}
		c.hangUp()
		w.mu.Lock()
		w.sightings = append(w.sightings, sighting{c.name, topic, reader.keys()})
		w.mu.Unlock()
	}
}

// checkSightings holds that whoever reads a topic from the beginning sees a part of what is there in the end, and nothing else: no
// message of a transaction that ends otherwise, none before another that is seen later, none that goes away.
func (w *world) checkSightings(final map[string][]string) {
	w.mu.Lock()
	all := slices.Clone(w.sightings)
	w.mu.Unlock()
	for _, s := range all {
		if there := final[s.topic]; !slices.Equal(s.keys, there[:min(len(s.keys), len(there))]) {
			w.fail("a reader saw something else than there is in the end",
				fmt.Sprintf("%s saw %v of %s, where there is %v", s.reader, s.keys, s.topic, there))
			return
		}
	}
}
