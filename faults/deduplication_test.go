package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const deduplication = "brokerDeduplicationEnabled=true"

// sender is a producer that keeps its name and its sequence ids over connections, as clients do.
type sender struct {
	*fixture
	client   *wiretopic.Client
	producer *wiretopic.Producer
}

// attach attaches the producer on a new connection, and returns the last sequence id that the server knows of it.
func (s *sender) attach() int64 {
	s.Helper()
	if s.client != nil {
		_ = s.client.Close() // its fate does not matter any more
	}
	s.client = s.dial()
	name, full := "p", topic("t")
	var err error
	s.producer, err = s.client.ProduceAs(s.ctx, &pulsarproto.CommandProducer{Topic: &full, ProducerName: &name})
	s.want("PRODUCER", err, success)
	return s.producer.Success().GetLastSequenceId()
}

// attachAt is attach that requires the last sequence id.
func (s *sender) attachAt(want int64) {
	s.Helper()
	if got := s.attach(); got != want {
		s.Fatalf("last sequence id %d, want %d", got, want)
	}
}

func (s *sender) try(sequence uint64, content string, id *txn.ID) (*pulsarproto.MessageIdData, error) {
	return s.producer.SendAs(s.ctx, &pulsarproto.MessageMetadata{SequenceId: &sequence}, content, id)
}

// store sends a message that must be stored.
func (s *sender) store(sequence uint64, content string, id *txn.ID) {
	s.Helper()
	position, err := s.try(sequence, content, id)
	s.want("SEND "+content, err, success)
	if int64(position.GetEntryId()) < 0 {
		s.Fatalf("%s is called a duplicate", content)
	}
}

// repeat sends a message that must be known.
func (s *sender) repeat(sequence uint64, content string, id *txn.ID) {
	s.Helper()
	position, err := s.try(sequence, content, id)
	s.want("SEND "+content, err, success)
	if positionText(position) != "18446744073709551615:-1" {
		s.Fatalf("%s is stored again, at %s", content, positionText(position))
	}
}

// lose sends a message that gets no receipt.
func (s *sender) lose(sequence uint64, content string, id *txn.ID) {
	s.Helper()
	_, err := s.try(sequence, content, id)
	s.want("SEND "+content, err, noAnswer)
}

// sendDamaged sends a message whose last byte is not the one that its checksum is of.
func (s *sender) sendDamaged(sequence uint64) error {
	s.Helper()
	published := uint64(time.Now().UnixMilli())
	payload, err := pulsarproto.AppendPayload(nil, &pulsarproto.MessageMetadata{
		ProducerName: s.producer.Success().ProducerName, SequenceId: &sequence, PublishTime: &published,
	}, []byte("damaged"))
	if err != nil {
		s.Fatal(err)
	}
	payload[len(payload)-1] ^= 1
	_, err = s.producer.SendPayload(s.ctx, sequence, payload)
	return err
}

func (s *sender) restart() {
	s.Helper()
	s.Kill()
	s.Start()
}

// FC-28: a sequence id whose write failed is stored by its repeat, once; what is stored stays known over restarts.
func TestFC28FailedWriteIsNoDuplicate(t *testing.T) {
	f := newStopped(t, binaries.Failpoint(t), deduplication)
	release := f.startUntilReleased("late:" + string(failpoint.Plain) + ":8")
	s := &sender{fixture: f}
	s.attachAt(-1)
	var want []string
	for sequence := range uint64(7) {
		s.store(sequence, fmt.Sprint("m", sequence), nil)
		want = append(want, fmt.Sprint("m", sequence))
	}
	s.lose(7, "m7", nil)
	s.attachAt(6)
	s.store(7, "m7", nil)
	s.store(8, "m8", nil)
	release()
	f.await("the late write arrives", func() bool { return f.Server.Said("PLAIN 8 applied") })
	s.repeat(7, "m7", nil)
	s.restart()
	s.attachAt(8)
	s.repeat(8, "m8", nil)
	f.holds(topic("t"), append(want, "m7", "m8")...)
}

// FC-28: neither a message whose checksum is wrong nor one that an unload cut off counts as stored.
func TestFC28RefusedIsNoDuplicate(t *testing.T) {
	f := newFixture(t, deduplication)
	s := &sender{fixture: f}
	s.attachAt(-1)
	s.store(0, "m0", nil)
	s.want("SEND with a wrong checksum", s.sendDamaged(1), pulsarproto.ServerError_ChecksumError)
	s.attachAt(0)
	s.store(1, "m1", nil)
	s.repeat(1, "m1", nil)

	answers := make(chan error, 20)
	for sequence := uint64(2); sequence < 22; sequence++ {
		s.producer.StartAs(&pulsarproto.MessageMetadata{SequenceId: &sequence}, fmt.Sprint("m", sequence), nil,
			func(_ *pulsarproto.MessageIdData, err error) { answers <- err })
	}
	f.mustRest(http.MethodPut, restPath(topic("t"))+"/unload", "")
	stored := 2
	for range cap(answers) {
		if err := <-answers; err == nil {
			stored++
		}
	}
	last := s.attach()
	if last < int64(stored)-1 {
		t.Errorf("last sequence id %d, and %d messages got receipts", last, stored)
	}
	want := []string{"m0", "m1"}
	for sequence := uint64(2); sequence < 22; sequence++ {
		want = append(want, fmt.Sprint("m", sequence))
		if int64(sequence) <= last {
			s.repeat(sequence, want[sequence], nil)
		} else {
			s.store(sequence, want[sequence], nil)
		}
	}
	f.holds(topic("t"), want...)
}

// FC-28: the ids of an aborted transaction are free again, before a restart and behind it; those of a committed one are taken.
func TestFC28SequenceOfAbortedTransaction(t *testing.T) {
	for restarts := range 2 {
		t.Run(fmt.Sprint(restarts, " restarts"), func(t *testing.T) {
			f := newFixture(t, deduplication)
			s := &sender{fixture: f}
			s.attachAt(-1)
			again := func(last int64) {
				t.Helper()
				if restarts > 0 {
					s.restart()
				}
				s.attachAt(last)
			}
			s.store(8, "m8", nil)
			x := f.begin(s.client, longTTL, "")
			s.store(9, "m9 in X", &x)
			again(9)
			s.repeat(9, "m9 in X", &x)
			f.end(s.client, x, txn.Abort, success)
			again(8)
			y := f.begin(s.client, longTTL, "")
			s.store(9, "m9 in Y", &y)
			s.store(10, "m10 in Y", &y)
			f.end(s.client, y, txn.Commit, success)
			again(10)
			s.repeat(9, "m9", nil)
			s.repeat(10, "m10", nil)
			f.holds(topic("t"), "m8", "m9 in Y", "m10 in Y")
		})
	}
}
