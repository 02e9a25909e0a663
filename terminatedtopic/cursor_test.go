package terminatedtopic

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

func durable(kind pulsarproto.CommandSubscribe_SubType, position pulsarproto.CommandSubscribe_InitialPosition) *pulsarproto.CommandSubscribe {
	return &pulsarproto.CommandSubscribe{
		Subscription: proto.String("d"), SubType: &kind, InitialPosition: &position, ReadCompacted: proto.Bool(true),
	}
}

func id(place uint64) *pulsarproto.MessageIdData {
	return &pulsarproto.MessageIdData{LedgerId: proto.Uint64(ledger), EntryId: &place}
}

func ack(places ...uint64) *pulsarproto.CommandAck {
	cmd := &pulsarproto.CommandAck{AckType: pulsarproto.CommandAck_Individual.Enum()}
	for _, place := range places {
		cmd.MessageId = append(cmd.MessageId, id(place))
	}
	return cmd
}

// TestCursor: what a durable consumer did not acknowledge comes again, to it and to the next one; SEEK and the last id.
func TestCursor(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	var places []uint64
	for _, name := range []string{"a", "b", "c"} {
		places = append(places, b.end(key("", name)))
	}
	cmd := durable(pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Earliest)
	p := newPeer(t)
	c := b.subscribe(t, cmd, p)
	if _, err := b.topics.Subscribe(t.Context(), topicName, cnx.Caller{}, cmd, newPeer(t)); !errors.Is(err, errConsumerBusy) {
		t.Errorf("a second Exclusive consumer: %v", err)
	}
	c.Flow(100)
	want := func(p *peer, places ...uint64) {
		t.Helper()
		await(t, fmt.Sprint(places), func() bool { p.mu.Lock(); defer p.mu.Unlock(); return slices.Equal(p.ids, places) })
	}
	want(p, places...)
	acknowledge := func(cmd *pulsarproto.CommandAck) {
		t.Helper()
		c.Ack(cmd, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	acknowledge(ack(places[0], places[2]))
	c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
	want(p, places[0], places[1], places[2], places[1], places[2])
	c.LastMessageID(func(last, mark *pulsarproto.MessageIdData, err error) {
		if err != nil || last.GetEntryId() != places[2] || mark.GetEntryId() != places[1]-1 {
			t.Errorf("last %v, mark delete %v, %v", last, mark, err)
		}
	})
	cumulative := ack(places[1])
	cumulative.AckType = pulsarproto.CommandAck_Cumulative.Enum()
	acknowledge(cumulative)
	c.Close()
	p = newPeer(t)
	c = b.subscribe(t, cmd, p)
	c.Flow(100)
	want(p, places[2])

	for _, seek := range []struct {
		cmd  *pulsarproto.CommandSeek
		want []uint64
	}{
		{&pulsarproto.CommandSeek{MessageId: id(places[1])}, places[1:]},
		{&pulsarproto.CommandSeek{MessageId: reader(0).StartMessageId}, places},
		{&pulsarproto.CommandSeek{MessagePublishTime: proto.Uint64(places[2])}, places[2:]},
	} {
		c.Seek(seek.cmd, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		<-p.disconnected
		c.Close()
		p = newPeer(t)
		c = b.subscribe(t, cmd, p)
		c.Flow(100)
		want(p, seek.want...)
	}
	c.Unsubscribe(false, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if n := len((*b.topics.all.Load())[0].subscriptions); n != 0 {
		t.Errorf("%d subscriptions after UNSUBSCRIBE", n)
	}
	c.Close()
}

// TestFailover: the next consumer goes on with what the first did not acknowledge.
func TestFailover(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	place := b.end(key("", "a"))
	cmd := durable(pulsarproto.CommandSubscribe_Failover, pulsarproto.CommandSubscribe_Earliest)
	p, q := newPeer(t), newPeer(t)
	first, second := b.subscribe(t, cmd, p), b.subscribe(t, cmd, q)
	defer second.Close()
	first.Flow(10)
	second.Flow(10)
	await(t, "the message", func() bool { return p.last() == place })
	if q.count() != 0 || q.active || !p.active {
		t.Error("the second consumer is active")
	}
	first.Close()
	await(t, "the message again", func() bool { return q.last() == place })
}

// TestSeekWhileAMessageIsMade: what was on its way when the cursor moved does not move it on.
func TestSeekWhileAMessageIsMade(t *testing.T) {
	b := newTopics(1 << 20)
	defer b.topics.Close()
	var places []uint64
	for _, name := range []string{"a", "b"} {
		places = append(places, b.end(key("", name)))
	}
	cmd := durable(pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Earliest)
	p := newPeer(t)
	c := b.subscribe(t, cmd, p)
	defer c.Close()
	c.Flow(1)
	await(t, "the first", func() bool { return p.last() == places[0] })
	b.hold, b.held = make(chan struct{}), make(chan struct{}, 10)
	c.Flow(2)
	<-b.held
	c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
	close(b.hold)
	want := []uint64{places[0], places[0], places[1]}
	await(t, fmt.Sprint(want), func() bool { p.mu.Lock(); defer p.mu.Unlock(); return slices.Equal(p.ids, want) })
}

// TestDeadConsumerInTheWay: an Exclusive consumer whose connection is dead does not keep the next one out.
func TestDeadConsumerInTheWay(t *testing.T) {
	for name, cmd := range map[string]*pulsarproto.CommandSubscribe{
		"durable": durable(pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Earliest), "reader": reader(0),
	} {
		t.Run(name, func(t *testing.T) {
			b := newTopics(1 << 20)
			defer b.topics.Close()
			place := b.end(key("", "a"))
			p, q := newPeer(t), newPeer(t)
			first := b.subscribe(t, cmd, p)
			defer first.Close()
			if _, err := b.topics.Subscribe(t.Context(), topicName, cnx.Caller{}, cmd, q); !errors.Is(err, errConsumerBusy) {
				t.Fatalf("beside one that is alive: %v", err)
			}
			p.dead = true
			second := b.subscribe(t, cmd, q)
			defer second.Close()
			second.Flow(1)
			await(t, "the message", func() bool { return q.last() == place })
		})
	}
}
