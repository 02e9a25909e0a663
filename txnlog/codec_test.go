package txnlog_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

const key = "/p/c/tc/0000000000000001/log/0000000000000007"

func encode(records []txn.Record) []byte {
	var e txnlog.Encoder
	e.Reset()
	for i := range records {
		e.Add(&records[i])
	}
	return append([]byte(nil), e.Value()...)
}

// seal puts a header in front of content, so that only the content is wrong.
func seal(content []byte) []byte {
	value := append([]byte{txnlog.Version, 0, 0, 0, 0}, content...)
	binary.LittleEndian.PutUint32(value[1:], crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
	return value
}

var (
	names    = rapid.StringN(0, 20, 60)
	statuses = rapid.SampledFrom([]txn.Status{txn.Open, txn.Committing, txn.Committed, txn.Aborting, txn.Aborted})
	owners   = rapid.Custom(func(t *rapid.T) txn.Owner {
		if !rapid.Bool().Draw(t, "known") {
			return txn.Owner{}
		}
		return txn.Owner{Role: names.Draw(t, "role"), Known: true}
	})
	partitions = rapid.Custom(func(t *rapid.T) txn.Participant {
		return txn.Participant{Topic: names.Draw(t, "topic")}
	})
	subscriptions = rapid.Custom(func(t *rapid.T) txn.Participant {
		return txn.Participant{
			Topic: names.Draw(t, "topic"), Subscription: names.Draw(t, "subscription"), Kind: txn.AckedSubscription,
		}
	})
)

func slice(t *rapid.T, name string, of ...*rapid.Generator[txn.Participant]) []txn.Participant {
	list := rapid.SliceOfN(rapid.OneOf(of...), 0, 5).Draw(t, name)
	if len(list) == 0 {
		return nil
	}
	return list
}

// recordOf draws a record with the fields that count for op, as listed at txn.Record.
func recordOf(t *rapid.T, op txn.Op) txn.Record {
	r := txn.Record{Op: op, Time: rapid.Int64().Draw(t, "time")}
	if op != txn.OpForget {
		r.Least = rapid.Uint64().Draw(t, "least")
	}
	switch op {
	case txn.OpForget:
		r.Owner, r.ClientName, r.Place = owners.Draw(t, "owner"), names.Draw(t, "client name"), rapid.Uint64().Draw(t, "place")
		r.Change = rapid.Uint64().Draw(t, "change")
	case txn.OpAddPartition:
		r.Participants = slice(t, "participants", partitions)
	case txn.OpAddSubscription:
		r.Participants = slice(t, "participants", subscriptions)
	case txn.OpUpdate:
		r.Expected, r.Status = statuses.Draw(t, "expected"), statuses.Draw(t, "status")
		r.TimedOut = rapid.Bool().Draw(t, "timed out")
	case txn.OpSnapshot:
		r.Status = statuses.Draw(t, "status")
		r.Participants = slice(t, "participants", partitions, subscriptions)
		r.Done = slice(t, "done", partitions, subscriptions)
	case txn.OpResolve:
		r.Participants = slice(t, "participants", partitions, subscriptions)
		r.Who = names.Draw(t, "who")
	case txn.OpOutcome:
		r.Status = statuses.Draw(t, "status")
	}
	if op == txn.OpNew || op == txn.OpSnapshot || op == txn.OpOutcome || r.Status.Final() {
		r.Owner, r.ClientName = owners.Draw(t, "owner"), names.Draw(t, "client name")
		r.StartTime, r.TimeoutMillis = rapid.Int64().Draw(t, "start"), rapid.Uint64().Draw(t, "timeout")
	}
	if op == txn.OpOutcome || op == txn.OpUpdate && r.Status.Final() {
		r.Place = rapid.Uint64().Draw(t, "place")
	}
	return r
}

var ops = []txn.Op{
	txn.OpNew, txn.OpAddPartition, txn.OpAddSubscription, txn.OpUpdate, txn.OpSnapshot, txn.OpResolve, txn.OpOutcome, txn.OpForget,
}

func drawRecords(t *rapid.T) []txn.Record {
	records := make([]txn.Record, rapid.IntRange(0, 8).Draw(t, "count"))
	for i := range records {
		records[i] = recordOf(t, rapid.SampledFrom(ops).Draw(t, "op"))
	}
	return records
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		value := encode(records)
		var d txnlog.Decoder
		got, err := d.Decode(key, value)
		if err != nil {
			t.Fatal(err)
		}
		if len(records)+len(got) > 0 && !reflect.DeepEqual(got, records) {
			t.Fatalf("got  %+v\nwant %+v", got, records)
		}
		limit := 5
		for i := range records {
			limit += txnlog.MaxSize(&records[i])
		}
		if len(value) > limit {
			t.Fatalf("value of %d bytes, MaxSize says at most %d", len(value), limit)
		}
	})
}

// Any change of any byte, any truncation and any trailing byte is noticed.
func TestDamageIsNoticed(t *testing.T) {
	value := encode([]txn.Record{
		{Op: txn.OpNew, Least: 1 << 50, StartTime: 1_700_000_000_000, Time: 1_700_000_000_000, TimeoutMillis: 60000},
		{Op: txn.OpAddPartition, Least: 1 << 50, Time: 1_700_000_000_010,
			Participants: []txn.Participant{{Topic: "persistent://a/b/c"}}},
	})
	var d txnlog.Decoder
	if _, err := d.Decode(key, value); err != nil {
		t.Fatal(err)
	}
	check := func(what string, damaged []byte) {
		t.Helper()
		_, err := d.Decode(key, damaged)
		var corrupt *txn.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Key != key || corrupt.Reason == "" {
			t.Errorf("%s: %v, want a *txn.CorruptError with key and reason", what, err)
		}
	}
	for i := range value {
		for bit := range 8 {
			damaged := append([]byte(nil), value...)
			damaged[i] ^= 1 << bit
			check("flipped bit", damaged)
		}
		check("truncated", value[:i])
	}
	check("trailing byte", append(append([]byte(nil), value...), 0))
}

func TestRefused(t *testing.T) {
	record := func(fields ...byte) []byte { return append([]byte{0x0a, byte(len(fields))}, fields...) }
	for _, c := range []struct {
		name, reason string
		value        []byte
	}{
		{"empty", "empty", nil},
		{"newer version", "unknown version 2", []byte{2, 0, 0, 0, 0}},
		{"no checksum", "truncated", []byte{1, 0}},
		{"field of no batch", "unexpected field 2", seal([]byte{0x10, 1})},
		{"base time behind a record", "unexpected field 32", seal(append(record(), 0x80, 0x02, 2))},
		{"record as a number", "unexpected field 1", seal([]byte{0x08, 1})},
		{"record longer than the value", "unexpected EOF", seal([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})},
		{"fixed64 field", "wire type 1", seal(record(0x09, 1, 2, 3, 4, 5, 6, 7, 8))},
		{"unknown op", "unknown op 4", seal(record(0x08, 4))},
		{"op beyond a byte", "unknown op 272", seal(record(0x08, 0x90, 0x02))},
		{"unknown status", "unknown status 5", seal(record(0x08, 3, 0x28, 5))},
		{"unknown field of a record", "field 3: unknown", seal(record(0x18, 1))},
		{"field beyond all", "unknown field 40", seal(record(0xc0, 0x02, 1))},
		{"text as a number", "wrong wire type", seal(record(0x60, 1))},
		{"number as a text", "wrong wire type", seal(record(0x12, 1, 'x'))},
		{"NEW with a status", "does not have", seal(record(0x28, 1))},
		{"ADD_PARTITION with a subscription", "does not have", seal(record(0x08, 1, 0x3a, 0))},
		{"UPDATE to COMMITTING with a place", "does not have", seal(record(0x08, 3, 0x28, 1, 0x80, 0x02, 1))},
		{"subscription with a third field", "unexpected field 3", seal(record(0x08, 2, 0x3a, 2, 0x1a, 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d txnlog.Decoder
			_, err := d.Decode(key, c.value)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("%v, want %q", err, c.reason)
			}
		})
	}
}

// An unnamed transaction without an owner and participants costs well below 60 bytes.
func TestCompact(t *testing.T) {
	now, least := int64(1_764_460_800_000), uint64(1_764_460_800)<<20
	var records []txn.Record
	for i := range uint64(128) {
		start, end := now+int64(i), now+int64(i)+20
		records = append(records,
			txn.Record{Op: txn.OpNew, Least: least + i, StartTime: start, TimeoutMillis: 60000, Time: start},
			txn.Record{Op: txn.OpUpdate, Least: least + i, Expected: txn.Open, Status: txn.Committed, StartTime: start,
				TimeoutMillis: 60000, Place: 1_000_000 + i, Time: end})
	}
	if size := len(encode(records)) / 128; size > 52 {
		t.Fatalf("%d bytes for NEW and UPDATE", size)
	}
}

// A load of many outcomes of few names holds each name once.
func TestNamesAreShared(t *testing.T) {
	value := encode([]txn.Record{
		{Op: txn.OpNew, Owner: txn.Owner{Role: "shop", Known: true}, ClientName: "orders"},
		{Op: txn.OpNew, Owner: txn.Owner{Role: "shop", Known: true}, ClientName: "orders"},
	})
	var d txnlog.Decoder
	first, err := d.Decode(key, value)
	if err != nil {
		t.Fatal(err)
	}
	owner, name := first[0].Owner.Role, first[0].ClientName
	second, err := d.Decode(key, value)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range second {
		if unsafe.StringData(r.ClientName) != unsafe.StringData(name) || unsafe.StringData(r.Owner.Role) != unsafe.StringData(owner) {
			t.Error("a name was copied")
		}
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	record := txn.Record{Op: txn.OpUpdate, Least: 7, Status: txn.Committed, ClientName: strings.Repeat("n", 200), Time: 5}
	var e txnlog.Encoder
	encode := func() {
		e.Reset()
		for range 100 {
			e.Add(&record)
		}
		e.Value()
	}
	encode()
	if allocs := testing.AllocsPerRun(10, encode); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzDecode(f *testing.F) {
	for _, op := range ops {
		f.Add(encode([]txn.Record{{Op: op, Least: 5, Time: 10, Status: txn.Aborted, Expected: txn.Aborting, Who: "w",
			Owner: txn.Owner{Role: "o", Known: true}, ClientName: "c", Participants: []txn.Participant{{Topic: "t"}},
			Done: []txn.Participant{{Topic: "t", Subscription: "s", Kind: txn.AckedSubscription}}}})[5:])
	}
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, content []byte) {
		var d txnlog.Decoder
		records, err := d.Decode(key, seal(content))
		if err != nil {
			return
		}
		first := append([]txn.Record(nil), records...)
		again, err := d.Decode(key, encode(first))
		if err != nil {
			t.Fatal(err)
		}
		if len(again) != len(first) || len(first) > 0 && !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v\nencoded and decoded: %+v", first, again)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var records []txn.Record
	for i := range uint64(256) {
		records = append(records, txn.Record{Op: txn.OpUpdate, Least: 1<<50 + i, Expected: txn.Committing, Status: txn.Committed,
			StartTime: 1_764_460_800_000, Time: 1_764_460_800_100, TimeoutMillis: 60000, Place: i, ClientName: "orders"})
	}
	value := encode(records)
	var d txnlog.Decoder
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(key, value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	r := txn.Record{Op: txn.OpUpdate, Least: 1 << 50, Expected: txn.Committing, Status: txn.Committed,
		StartTime: 1_764_460_800_000, Time: 1_764_460_800_100, TimeoutMillis: 60000, Place: 9, ClientName: "orders"}
	var e txnlog.Encoder
	b.ReportAllocs()
	for b.Loop() {
		e.Reset()
		for range 256 {
			e.Add(&r)
		}
		e.Value()
	}
}
