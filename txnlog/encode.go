package txnlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encoder builds one value after the other in a buffer that it keeps. The zero Encoder is ready; call Reset before a value.
type Encoder struct {
	buf     []byte
	base    int64
	records int
}

// Reset starts a new value. The bytes of the value before are gone.
func (e *Encoder) Reset() {
	e.buf = append(e.buf[:0], Version, 0, 0, 0, 0)
	e.base, e.records = 0, 0
}

// Records is the number of records of the value so far.
func (e *Encoder) Records() int { return e.records }

// Len is the size of the value so far, in bytes.
func (e *Encoder) Len() int { return len(e.buf) }

// Add appends a record. It panics if the op is unknown: nothing could read it back. Fields that do not count for the op are
// not stored.
func (e *Encoder) Add(r *txn.Record) {
	allowed, known := fieldsOf(r)
	if !known {
		panic(fmt.Sprintf("txnlog: record of unknown op %d", r.Op))
	}
	if e.records == 0 && r.Time != 0 {
		e.base = r.Time
		e.buf = protowire.AppendTag(e.buf, fieldBaseTime, protowire.VarintType)
		e.buf = protowire.AppendVarint(e.buf, protowire.EncodeZigZag(e.base))
	}
	e.records++
	e.buf = protowire.AppendTag(e.buf, fieldRecord, protowire.BytesType)
	start := len(e.buf)
	e.buf = append(e.buf, 0)
	e.buf = appendRecord(e.buf, r, allowed, e.base)
	e.buf = closeMessage(e.buf, start)
}

// Value completes the value and returns it. It is valid until Reset.
func (e *Encoder) Value() []byte {
	binary.LittleEndian.PutUint32(e.buf[versionSize:], crc32.Checksum(e.buf[headerSize:], castagnoli))
	return e.buf
}

// closeMessage writes the length of the message that begins behind the one byte reserved for it at start.
func closeMessage(b []byte, start int) []byte {
	size := len(b) - start - 1
	if size < 1<<7 {
		b[start] = byte(size)
		return b
	}
	extra := protowire.SizeVarint(uint64(size)) - 1
	for range extra {
		b = append(b, 0)
	}
	copy(b[start+1+extra:], b[start+1:start+1+size])
	protowire.AppendVarint(b[:start], uint64(size))
	return b
}

func appendRecord(b []byte, r *txn.Record, allowed fieldSet, base int64) []byte {
	b = appendNumber(b, fieldOp, uint64(r.Op))
	if allowed&fields(fieldLeast) != 0 {
		b = appendNumber(b, fieldLeast, r.Least)
	}
	if allowed&fields(fieldExpected) != 0 {
		b = appendNumber(b, fieldExpected, uint64(r.Expected))
	}
	if allowed&fields(fieldStatus) != 0 {
		b = appendNumber(b, fieldStatus, uint64(r.Status))
	}
	if allowed&fields(fieldPartition, fieldSubscription) != 0 {
		b = appendParticipants(b, fieldPartition, fieldSubscription, r.Participants)
	}
	if allowed&fields(fieldTimeout) != 0 {
		b = appendNumber(b, fieldTimeout, r.TimeoutMillis)
	}
	if allowed&owning == owning {
		b = appendOwner(b, r)
	}
	if allowed&fields(fieldStart) != 0 {
		b = appendNumber(b, fieldStart, protowire.EncodeZigZag(r.StartTime-r.Time))
	}
	if allowed&fields(fieldPlace) != 0 {
		b = appendNumber(b, fieldPlace, r.Place)
	}
	if allowed&fields(fieldChange) != 0 {
		b = appendNumber(b, fieldChange, r.Change)
	}
	if r.TimedOut && allowed&fields(fieldTimedOut) != 0 {
		b = appendNumber(b, fieldTimedOut, 1)
	}
	b = appendNumber(b, fieldTime, protowire.EncodeZigZag(r.Time-base))
	if r.Who != "" && allowed&fields(fieldWho) != 0 {
		b = appendText(b, fieldWho, r.Who)
	}
	if allowed&fields(fieldDonePartition) != 0 {
		b = appendParticipants(b, fieldDonePartition, fieldDoneSubscription, r.Done)
	}
	return b
}

// appendOwner writes whose the transaction, or what is forgotten, is.
func appendOwner(b []byte, r *txn.Record) []byte {
	if r.Owner.Known {
		b = appendText(b, fieldOwner, r.Owner.Role)
	}
	if r.ClientName != "" {
		b = appendText(b, fieldClientName, r.ClientName)
	}
	return b
}

func appendParticipants(b []byte, partition, subscription protowire.Number, participants []txn.Participant) []byte {
	for i := range participants {
		p := &participants[i]
		if p.Kind == txn.Partition {
			b = appendText(b, partition, p.Topic)
			continue
		}
		b = protowire.AppendTag(b, subscription, protowire.BytesType)
		start := len(b)
		b = append(b, 0)
		b = appendText(b, fieldSubscriptionTopic, p.Topic)
		b = appendText(b, fieldSubscriptionName, p.Subscription)
		b = closeMessage(b, start)
	}
	return b
}

// appendNumber leaves zero out.
func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, n)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, text)
}

// MaxSize is an upper bound of what Add appends for r, in bytes.
func MaxSize(r *txn.Record) int {
	const (
		numbers    = 12 * 12 // tag and value of every number, the base time and the record's own length
		text       = 7       // tag and length of a text
		membership = 3 * text
	)
	size := numbers + 3*text + len(r.Owner.Role) + len(r.ClientName) + len(r.Who)
	for i := range r.Participants {
		size += membership + r.Participants[i].Size()
	}
	for i := range r.Done {
		size += membership + r.Done[i].Size()
	}
	return size
}
