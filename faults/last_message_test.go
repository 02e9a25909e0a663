package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// readerTime bounds a reader's loop: one that waits for a message which never comes is found out.
const readerTime = 5 * time.Second

// readAll reads as applications do, while there is a message.
func (f *fixture) readAll(client pulsar.Client, topic string) []string {
	f.Helper()
	return f.readWhile(client, pulsar.ReaderOptions{Topic: topic}, func(m pulsar.Message) string { return string(m.Payload()) })
}

// readWhile reads from earliest as long as the official reader says that there is a message.
func (f *fixture) readWhile(client pulsar.Client, options pulsar.ReaderOptions, show func(pulsar.Message) string) []string {
	f.Helper()
	options.StartMessageID = pulsar.EarliestMessageID()
	reader, err := client.CreateReader(options)
	if err != nil {
		f.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(f.ctx, readerTime)
	defer cancel()
	var contents []string
	for reader.HasNext() {
		message, err := reader.Next(ctx)
		if err != nil {
			f.Fatalf("%s: after %q the reader is told of a message that does not come: %v", options.Topic, contents, err)
		}
		contents = append(contents, show(message))
	}
	return contents
}

func positionText(id *pulsarproto.MessageIdData) string {
	return fmt.Sprintf("%d:%d", id.GetLedgerId(), int64(id.GetEntryId()))
}

// FC-20: the last message is one that is delivered, neither a marker nor aborted, and a reader's loop ends, before a restart and
// right behind it.
func TestFC20ReaderEnds(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	cases := []struct {
		topic string
		ends  []txn.Action // of one transaction each
		last  int          // of the messages; -1: none
	}{
		{topic("committed"), []txn.Action{txn.Commit, txn.Commit, txn.Commit}, 2},
		{topic("aborted-last"), []txn.Action{txn.Commit, txn.Commit, txn.Abort}, 1},
		{topic("aborted"), []txn.Action{txn.Abort, txn.Abort}, -1},
		{topic("empty"), nil, -1},
	}
	positions := make([][]string, len(cases))
	for i, c := range cases {
		producer := f.produce(client, c.topic)
		for n, action := range c.ends {
			id := f.begin(client, longTTL, "")
			position, err := producer.Send(f.ctx, fmt.Sprint("m", n), &id)
			f.want("SEND", err, success)
			f.end(client, id, action, success)
			positions[i] = append(positions[i], positionText(position))
		}
	}
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
			client = f.dial()
		}
		official := f.official()
		for i, c := range cases {
			reader, err := client.Reader(f.ctx, c.topic, "last")
			if err != nil {
				t.Fatal(err)
			}
			last, err := reader.LastMessageID(f.ctx)
			f.want("GET_LAST_MESSAGE_ID", err, success)
			if c.last < 0 && int64(last.GetEntryId()) != -1 || c.last >= 0 && positionText(last) != positions[i][c.last] {
				t.Errorf("restart %d, %s: the last message is %s of %v", restart, c.topic, positionText(last), positions[i])
			}
			var want []string
			for n, action := range c.ends {
				if action == txn.Commit {
					want = append(want, fmt.Sprint("m", n))
				}
			}
			if got := f.readAll(official, c.topic); !slices.Equal(got, want) {
				t.Errorf("restart %d, %s: read %q, want %q", restart, c.topic, got, want)
			}
		}
	}
}

// FC-21: a message of an open transaction is not the last one, and nothing behind it is, also right after a restart.
func TestFC21OpenTransaction(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		t.Run(action.String(), func(t *testing.T) {
			f := newFixture(t)
			client := f.dial()
			last := func(name string) string {
				t.Helper()
				reader, err := client.Reader(f.ctx, topic(name), "last")
				f.want("SUBSCRIBE", err, success)
				id, err := reader.LastMessageID(f.ctx)
				f.want("GET_LAST_MESSAGE_ID", err, success)
				f.want("CLOSE_CONSUMER", reader.Close(f.ctx), success)
				return positionText(id)
			}
			send := func(producer *wiretopic.Producer, content string, id *txn.ID) string {
				t.Helper()
				position, err := producer.Send(f.ctx, content, id)
				f.want("SEND "+content, err, success)
				return positionText(position)
			}
			producer, first := f.produce(client, topic("t")), f.produce(client, topic("first"))
			id := f.begin(client, longTTL, "")
			m1 := send(producer, "m1", nil)
			send(producer, "m2", &id)
			m3 := send(producer, "m3", nil)
			send(first, "m1", &id)
			behind := send(first, "m2", nil)
			for restart := range 2 {
				if restart == 1 {
					f.Kill()
					f.Start()
					client = f.dial()
				}
				if got := last("t"); got != m1 {
					t.Errorf("restart %d: last message %s, want %s", restart, got, m1)
				}
				if got := last("first"); got[len(got)-3:] != ":-1" {
					t.Errorf("restart %d: last message %s where an open transaction comes first", restart, got)
				}
			}
			f.end(client, id, action, success)
			if got := last("t"); got != m3 {
				t.Errorf("last message %s, want %s", got, m3)
			}
			if got := last("first"); got != behind {
				t.Errorf("last message %s, want %s", got, behind)
			}
		})
	}
}
