package txnlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Decoder reads values. It keeps one copy of each name that it meets, so that the records of a whole load share their
// strings. It belongs to one goroutine; the zero Decoder is ready.
type Decoder struct {
	names   map[string]string
	records []txn.Record
}

// Decode reads a value. key names it in errors, which are *txn.CorruptError. The slice is valid until the next call; the
// slices of participants and all strings in it are the caller's to keep.
func (d *Decoder) Decode(key string, value []byte) ([]txn.Record, error) {
	content, err := open(value)
	if err == nil {
		d.records, err = d.batch(d.records[:0], content)
	}
	if err != nil {
		return nil, &txn.CorruptError{Key: key, Reason: err.Error()}
	}
	return d.records, nil
}

// open checks version and checksum and returns what they guard.
func open(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errors.New("empty")
	}
	if value[0] != Version {
		return nil, fmt.Errorf("unknown version %d, this build reads %d", value[0], Version)
	}
	if len(value) < headerSize {
		return nil, fmt.Errorf("truncated: %d bytes", len(value))
	}
	content := value[headerSize:]
	stored, computed := binary.LittleEndian.Uint32(value[versionSize:]), crc32.Checksum(content, castagnoli)
	if stored != computed {
		return nil, fmt.Errorf("checksum %08x, want %08x: changed, truncated or followed by other bytes", computed, stored)
	}
	return content, nil
}

func (d *Decoder) batch(records []txn.Record, b []byte) ([]txn.Record, error) {
	var base int64
	for len(b) > 0 {
		field, value, rest, err := consume(b)
		if err != nil {
			return records, err
		}
		b = rest
		switch {
		case field == fieldRecord && value.text != nil:
			records = append(records, txn.Record{})
			if err := d.record(&records[len(records)-1], value.text, base); err != nil {
				return records, fmt.Errorf("record %d: %w", len(records)-1, err)
			}
		case field == fieldBaseTime && value.text == nil && len(records) == 0:
			base = protowire.DecodeZigZag(value.number)
		default:
			return records, fmt.Errorf("unexpected field %d of the batch", field)
		}
	}
	return records, nil
}

// fieldValue is a number, or a text if that is not nil.
type fieldValue struct {
	number uint64
	text   []byte
}

// consume reads one field of the two wire types in use.
func consume(b []byte) (protowire.Number, fieldValue, []byte, error) {
	field, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, fieldValue{}, nil, fmt.Errorf("field tag: %w", protowire.ParseError(n))
	}
	b = b[n:]
	switch kind {
	case protowire.VarintType:
		number, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return 0, fieldValue{}, nil, fmt.Errorf("field %d: %w", field, protowire.ParseError(n))
		}
		return field, fieldValue{number: number}, b[n:], nil
	case protowire.BytesType:
		text, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return 0, fieldValue{}, nil, fmt.Errorf("field %d: %w", field, protowire.ParseError(n))
		}
		return field, fieldValue{text: text[:len(text):len(text)]}, b[n:], nil
	}
	return 0, fieldValue{}, nil, fmt.Errorf("field %d: unexpected wire type %d", field, kind)
}

// textFields are the fields of a record that hold texts or messages.
var textFields = fields(fieldPartition, fieldSubscription, fieldOwner, fieldClientName, fieldWho, fieldDonePartition,
	fieldDoneSubscription)

func (d *Decoder) record(r *txn.Record, b []byte, base int64) error {
	var seen fieldSet
	var start int64
	for len(b) > 0 {
		field, value, rest, err := consume(b)
		if err != nil {
			return err
		}
		b = rest
		if field > largestField {
			return fmt.Errorf("unknown field %d", field)
		}
		bit := fieldSet(1) << field
		if (textFields&bit != 0) != (value.text != nil) {
			return fmt.Errorf("field %d: wrong wire type", field)
		}
		seen |= bit
		if field == fieldStart {
			start = protowire.DecodeZigZag(value.number)
			continue
		}
		if err := d.field(r, field, value); err != nil {
			return fmt.Errorf("field %d: %w", field, err)
		}
	}
	allowed, known := fieldsOf(r)
	if !known {
		return fmt.Errorf("unknown op %d", r.Op)
	}
	if extra := seen &^ allowed; extra != 0 {
		return fmt.Errorf("op %d with fields that it does not have: %x", r.Op, uint64(extra))
	}
	r.Time += base
	if allowed&fields(fieldStart) != 0 {
		r.StartTime = r.Time + start
	}
	return nil
}

func (d *Decoder) field(r *txn.Record, field protowire.Number, value fieldValue) (err error) {
	switch field {
	case fieldOp:
		if value.number > uint64(txn.OpForget) {
			return fmt.Errorf("unknown op %d", value.number)
		}
		r.Op = txn.Op(value.number)
	case fieldLeast:
		r.Least = value.number
	case fieldExpected:
		r.Expected, err = status(value.number)
	case fieldStatus:
		r.Status, err = status(value.number)
	case fieldPartition:
		r.Participants = append(r.Participants, txn.Participant{Topic: d.name(value.text)})
	case fieldSubscription:
		r.Participants, err = d.subscription(r.Participants, value.text)
	case fieldTimeout:
		r.TimeoutMillis = value.number
	case fieldOwner:
		r.Owner = txn.Owner{Role: d.name(value.text), Known: true}
	case fieldClientName:
		r.ClientName = d.name(value.text)
	case fieldPlace:
		r.Place = value.number
	case fieldChange:
		r.Change = value.number
	case fieldTimedOut:
		r.TimedOut = value.number != 0
	case fieldTime:
		r.Time = protowire.DecodeZigZag(value.number)
	case fieldWho:
		r.Who = d.name(value.text)
	case fieldDonePartition:
		r.Done = append(r.Done, txn.Participant{Topic: d.name(value.text)})
	case fieldDoneSubscription:
		r.Done, err = d.subscription(r.Done, value.text)
	default:
		return errors.New("unknown")
	}
	return err
}

func status(n uint64) (txn.Status, error) {
	if n > uint64(txn.Aborted) {
		return 0, fmt.Errorf("unknown status %d", n)
	}
	return txn.Status(n), nil
}

func (d *Decoder) subscription(to []txn.Participant, b []byte) ([]txn.Participant, error) {
	p := txn.Participant{Kind: txn.AckedSubscription}
	for len(b) > 0 {
		field, value, rest, err := consume(b)
		if err != nil {
			return to, err
		}
		b = rest
		switch {
		case field == fieldSubscriptionTopic && value.text != nil:
			p.Topic = d.name(value.text)
		case field == fieldSubscriptionName && value.text != nil:
			p.Subscription = d.name(value.text)
		default:
			return to, fmt.Errorf("unexpected field %d of a subscription", field)
		}
	}
	return append(to, p), nil
}

// name returns the one copy of a text.
func (d *Decoder) name(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if name, known := d.names[string(text)]; known {
		return name
	}
	if d.names == nil {
		d.names = make(map[string]string)
	}
	name := string(text)
	d.names[name] = name
	return name
}
