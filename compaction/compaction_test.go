package compaction

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pierrec/lz4/v4"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// single is one message: a key with a value, or a tombstone without.
type single struct {
	key   string // empty: none
	value string // empty: a tombstone
}

func metadata(change func(*pulsarproto.MessageMetadata)) *pulsarproto.MessageMetadata {
	m := &pulsarproto.MessageMetadata{ProducerName: proto.String("p"), SequenceId: proto.Uint64(1), PublishTime: proto.Uint64(2)}
	change(m)
	return m
}

func entry(t testing.TB, at uint64, m *pulsarproto.MessageMetadata, content []byte) ledger.Entry {
	t.Helper()
	payload, err := pulsarproto.AppendPayload(nil, m, content)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Entry{
		Position: ledger.Position{Ledger: 1, Entry: at}, Producer: "p", Payload: payload,
		NumMessages: uint32(max(1, m.GetNumMessagesInBatch())), IsBatch: m.NumMessagesInBatch != nil,
	}
}

func plain(t testing.TB, at uint64, s single) ledger.Entry {
	return entry(t, at, metadata(func(m *pulsarproto.MessageMetadata) {
		if s.key != "" {
			m.PartitionKey = &s.key
		}
		if s.value == "" {
			m.NullValue = proto.Bool(true)
		}
	}), []byte(s.value))
}

func batch(t testing.TB, at uint64, kind pulsarproto.CompressionType, singles ...single) ledger.Entry {
	t.Helper()
	var body []byte
	for _, s := range singles {
		meta := &pulsarproto.SingleMessageMetadata{PayloadSize: proto.Int32(int32(len(s.value)))}
		if s.key != "" {
			meta.PartitionKey = &s.key
		}
		text, err := proto.Marshal(meta)
		if err != nil {
			t.Fatal(err)
		}
		body = binary.BigEndian.AppendUint32(body, uint32(len(text)))
		body = append(append(body, text...), s.value...)
	}
	var c codec
	compressed, err := c.compress(kind, body)
	if err != nil {
		t.Fatal(err)
	}
	return entry(t, at, metadata(func(m *pulsarproto.MessageMetadata) {
		m.NumMessagesInBatch = proto.Int32(int32(len(singles)))
		m.Compression = kind.Enum()
		m.UncompressedSize = proto.Uint32(uint32(len(body)))
	}), compressed)
}

func run(t interface{ Fatalf(string, ...any) }, o Options, entries []ledger.Entry) []Kept {
	c := New(o)
	defer c.Close()
	for i := range entries {
		c.Note(&entries[i], nil)
	}
	var out []Kept
	for i := range entries {
		k, stays, err := c.Keep(&entries[i], nil)
		if err != nil {
			t.Fatalf("keep: %v", err)
		}
		if stays {
			out = append(out, k)
		}
	}
	return out
}

func entriesOf(kept []Kept) []ledger.Entry {
	var out []ledger.Entry
	for _, k := range kept {
		out = append(out, k.Entry)
	}
	return out
}

// show is what consumers that know placeholders see, entry by entry.
func show(entries []ledger.Entry) string {
	var c codec
	var out bytes.Buffer
	for i := range entries {
		opened := c.open(&entries[i], nil)
		fmt.Fprintf(&out, "%d[", entries[i].Position.Entry)
		if opened.opaque {
			out.WriteString("opaque")
		}
		for n, m := range opened.messages {
			if n > 0 {
				out.WriteByte(' ')
			}
			if m.gone {
				out.WriteByte('-')
			} else {
				out.WriteString(m.key)
			}
		}
		out.WriteString("] ")
	}
	return out.String()
}

func TestCompaction(t *testing.T) {
	const lz4, none = pulsarproto.CompressionType_LZ4, pulsarproto.CompressionType_NONE
	chunk := func(at uint64, key, uuid string, id, of int32) ledger.Entry {
		return entry(t, at, metadata(func(m *pulsarproto.MessageMetadata) {
			m.PartitionKey, m.Uuid, m.ChunkId, m.NumChunksFromMsg = &key, &uuid, &id, &of
		}), []byte("part"))
	}
	encrypted := batch(t, 1, none, single{"a", "1"}, single{"a", "2"})
	sealed, body, err := pulsarproto.ParsePayload(encrypted.Payload)
	if err != nil {
		t.Fatal(err)
	}
	sealed.EncryptionKeys = []*pulsarproto.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}}
	encrypted = entry(t, 1, sealed, body)
	broken := batch(t, 1, lz4, single{"a", "1"})
	broken.Payload = slices.Clone(broken.Payload[:len(broken.Payload)-1])
	for _, c := range []struct {
		name    string
		options Options
		entries []ledger.Entry
		want    string
	}{
		{"newest of a key", Options{}, []ledger.Entry{plain(t, 1, single{"a", "1"}), plain(t, 2, single{"b", "1"}), plain(t, 3, single{"a", "2"})}, "2[b] 3[a] "},
		{"a tombstone takes the key away", Options{}, []ledger.Entry{plain(t, 1, single{"a", "1"}), plain(t, 2, single{"a", ""})}, ""},
		{"a key comes again", Options{}, []ledger.Entry{plain(t, 1, single{"a", ""}), plain(t, 2, single{"a", "1"})}, "2[a] "},
		{"without key: goes", Options{}, []ledger.Entry{plain(t, 1, single{"", "1"})}, ""},
		{"without key: stays", Options{RetainNullKey: true}, []ledger.Entry{plain(t, 1, single{"", "1"})}, "1[] "},
		{"within a batch", Options{}, []ledger.Entry{batch(t, 1, lz4, single{"a", "1"}, single{"b", "1"}, single{"a", "2"})}, "1[- b a] "},
		{"a batch without anything left", Options{}, []ledger.Entry{batch(t, 1, lz4, single{"a", "1"}), plain(t, 2, single{"a", "2"})}, "2[a] "},
		{"encrypted batch", Options{}, []ledger.Entry{encrypted, plain(t, 2, single{"a", "3"})}, "1[opaque] 2[a] "},
		{"broken batch", Options{}, []ledger.Entry{broken, plain(t, 2, single{"a", "3"})}, "1[opaque] 2[a] "},
		{"chunks stay together", Options{}, []ledger.Entry{chunk(1, "a", "u", 0, 2), plain(t, 2, single{"b", "1"}), chunk(3, "a", "u", 1, 2)}, "1[a] 2[b] 3[a] "},
		{"chunks go together", Options{}, []ledger.Entry{chunk(1, "a", "u", 0, 2), chunk(2, "a", "u", 1, 2), plain(t, 3, single{"a", "1"})}, "3[a] "},
		{"a uuid that a producer uses again is another message", Options{}, []ledger.Entry{
			chunk(1, "a", "u", 0, 2), chunk(2, "a", "u", 1, 2), chunk(3, "a", "u", 0, 2), chunk(4, "a", "u", 1, 2),
		}, "3[a] 4[a] "},
		{"one with the same uuid that was never finished goes", Options{}, []ledger.Entry{
			chunk(1, "a", "u", 0, 3), chunk(2, "a", "u", 1, 3), chunk(3, "a", "u", 0, 3), chunk(4, "a", "u", 1, 3), chunk(5, "a", "u", 2, 3),
		}, "3[a] 4[a] 5[a] "},
		{"chunks sent again take nothing away", Options{}, []ledger.Entry{
			chunk(1, "a", "u", 0, 3), chunk(2, "a", "u", 1, 3), chunk(3, "a", "u", 1, 3), chunk(4, "a", "u", 2, 3), chunk(5, "a", "u", 2, 3),
		}, "1[a] 2[a] 3[a] 4[a] "},
		{"a message without its first chunk is none", Options{}, []ledger.Entry{
			plain(t, 1, single{"a", "1"}), chunk(2, "a", "u", 1, 3), chunk(3, "a", "u", 2, 3),
		}, "1[a] "},
		{"an unfinished message takes nothing away, and stays", Options{}, []ledger.Entry{plain(t, 1, single{"a", "1"}), chunk(2, "a", "u", 0, 2)}, "1[a] 2[a] "},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := run(t, c.options, c.entries)
			if got := show(entriesOf(kept)); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
		})
	}
}

// TestMemoryFollowsLiveKeys: neither history nor deleted keys are held.
func TestMemoryFollowsLiveKeys(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	at := uint64(0)
	for range 100 {
		for _, s := range []single{{"a", "1"}, {fmt.Sprint("k", at), "1"}, {fmt.Sprint("k", at), ""}} {
			e := plain(t, at, s)
			c.Note(&e, nil)
		}
		at++
	}
	if c.Keys() != 1 {
		t.Errorf("%d keys are held, 1 is live", c.Keys())
	}
}

// TestPayloadsDoNotGrow: a batch that its producer compressed better than is done here keeps its payload, and what is gone of it
// stays gone: a key whose tombstone an earlier compaction has dropped does not come back.
func TestPayloadsDoNotGrow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([][]byte, 4096)
	for i := range vocabulary {
		vocabulary[i] = fmt.Appendf(nil, "%x ", random.Uint32N(1<<24))
	}
	var text []byte
	for len(text) < 1<<20 {
		text = append(text, vocabulary[random.IntN(len(vocabulary))]...)
	}
	loose := batch(t, 1, pulsarproto.CompressionType_LZ4, single{"deleted", "1"}, single{"live", string(text)})
	m, body, err := pulsarproto.ParsePayload(loose.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var c codec
	plainBody, err := c.decompress(m.GetCompression(), body, m.GetUncompressedSize())
	if err != nil {
		t.Fatal(err)
	}
	tight := make([]byte, lz4.CompressBlockBound(len(plainBody)))
	n, err := (&lz4.CompressorHC{Level: lz4.Level9}).CompressBlock(plainBody, tight)
	if err != nil || n >= len(body)-100 {
		t.Fatalf("%d bytes are not less than %d: %v", n, len(body), err)
	}
	sent := entry(t, 1, m, tight[:n])

	first := run(t, Options{}, []ledger.Entry{sent, plain(t, 2, single{"deleted", ""})})
	if len(first) != 1 || !bytes.Equal(first[0].Payload, sent.Payload) || !slices.Equal(first[0].Gone, ledger.Bits{1}) {
		t.Fatalf("%d entries are kept, of %d bytes instead of %d, without %b", len(first), len(first[0].Payload), len(sent.Payload), first[0].Gone)
	}
	again := New(Options{})
	defer again.Close()
	again.Note(&first[0].Entry, first[0].Gone)
	second, stays, err := again.Keep(&first[0].Entry, first[0].Gone)
	if err != nil || !stays || !slices.Equal(second.Gone, ledger.Bits{1}) || second.Last != 1 || again.Keys() != 1 {
		t.Errorf("a second run keeps %t without %b, last %d, %d keys, %v", stays, second.Gone, second.Last, again.Keys(), err)
	}
}

// TestCompactedIsTheFold: what is kept folds to the same by key as the whole, with one message for each key; positions, batch
// sizes and order stay, a second run over it and what came since does the same, and what is stored comes back.
func TestCompactedIsTheFold(t *testing.T) {
	kinds := []pulsarproto.CompressionType{
		pulsarproto.CompressionType_NONE, pulsarproto.CompressionType_LZ4, pulsarproto.CompressionType_ZLIB,
		pulsarproto.CompressionType_ZSTD, pulsarproto.CompressionType_SNAPPY,
	}
	rapid.Check(t, func(rt *rapid.T) {
		at, value := uint64(0), 0
		draw := func() single {
			s := single{key: rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(rt, "key")}
			if value++; !rapid.Bool().Draw(rt, "tombstone") || s.key == "" {
				s.value = fmt.Sprint("value-", value)
			}
			return s
		}
		var before []ledger.Entry
		fold, keyless := map[string]string{}, 0
		for range rapid.IntRange(1, 3).Draw(rt, "runs") {
			entries := slices.Clone(before)
			for range rapid.IntRange(0, 12).Draw(rt, "entries") {
				at++
				if rapid.Bool().Draw(rt, "batch") {
					var singles []single
					for range rapid.IntRange(1, 70).Draw(rt, "size") {
						singles = append(singles, draw())
					}
					entries = append(entries, batch(t, at, rapid.SampledFrom(kinds).Draw(rt, "kind"), singles...))
					for _, s := range singles {
						apply(fold, &keyless, s)
					}
					continue
				}
				s := draw()
				entries = append(entries, plain(t, at, s))
				apply(fold, &keyless, s)
			}
			retain := rapid.Bool().Draw(rt, "retain")
			if !retain {
				keyless = 0
			}
			kept := run(rt, Options{RetainNullKey: retain}, entries)
			stored, err := DecodeBlock(EncodeBlock(kept))
			if err != nil {
				rt.Fatalf("decode: %v", err)
			}
			got, messages, without := contents(rt, stored)
			if !maps.Equal(got, fold) || messages != len(fold) || without != keyless {
				rt.Fatalf("kept %v in %d messages and %d without key, want %v and %d", got, messages, without, fold, keyless)
			}
			check(rt, entries, kept, stored)
			before = entriesOf(stored)
		}
	})
}

func apply(fold map[string]string, keyless *int, s single) {
	switch {
	case s.key == "":
		*keyless++
	case s.value == "":
		delete(fold, s.key)
	default:
		fold[s.key] = s.value
	}
}

// contents reads kept entries as a consumer does: indexes that are gone are not looked at.
func contents(t *rapid.T, kept []Kept) (fold map[string]string, keyed, keyless int) {
	fold = map[string]string{}
	var c codec
	for i := range kept {
		m, body, err := pulsarproto.ParsePayload(kept[i].Payload)
		if err != nil {
			t.Fatalf("payload: %v", err)
		}
		if m.NumMessagesInBatch == nil {
			if m.PartitionKey == nil {
				keyless++
				continue
			}
			fold[m.GetPartitionKey()] = string(body)
			keyed++
			continue
		}
		opened := c.open(&kept[i].Entry, nil)
		last := int32(-1)
		for n, s := range opened.messages {
			gone := kept[i].Gone != nil && has(kept[i].Gone, n)
			if gone != s.gone {
				t.Fatalf("index %d of %v: placeholder %t, gone %t", n, kept[i].Position, s.gone, gone)
			}
			if gone {
				continue
			}
			last = int32(n)
			if !s.keyed {
				keyless++
				continue
			}
			size := int(binary.BigEndian.Uint32(s.bytes))
			fold[s.key] = string(s.bytes[4+size:])
			keyed++
		}
		if last < 0 {
			t.Fatalf("nothing is left of the batch at %v", kept[i].Position)
		}
	}
	return fold, keyed, keyless
}

func check(t *rapid.T, entries []ledger.Entry, kept, stored []Kept) {
	if len(kept) != len(stored) {
		t.Fatalf("%d kept, %d stored", len(kept), len(stored))
	}
	for i := range kept {
		k, s := &kept[i], &stored[i]
		if k.Position != s.Position || !bytes.Equal(k.Payload, s.Payload) || !slices.Equal(k.Gone, s.Gone) || k.NumMessages != s.NumMessages {
			t.Fatalf("kept %+v, stored %+v", k, s)
		}
		n := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Position == k.Position })
		if n < 0 || entries[n].NumMessages != k.NumMessages {
			t.Fatalf("entry at %v is none of those", k.Position)
		}
		if k.Gone == nil && !bytes.Equal(k.Payload, entries[n].Payload) {
			t.Fatalf("payload at %v has changed", k.Position)
		}
	}
}

func FuzzDecodeBlock(f *testing.F) {
	f.Add(EncodeBlock(run(f, Options{}, []ledger.Entry{
		plain(f, 1, single{"a", "1"}), batch(f, 2, pulsarproto.CompressionType_NONE, single{"b", "1"}, single{"b", "2"}),
	})))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, value []byte) {
		kept, err := DecodeBlock(value)
		if err != nil {
			return
		}
		again, err := DecodeBlock(EncodeBlock(kept))
		if err != nil || len(again) != len(kept) {
			t.Fatalf("%d entries come back as %d, %v", len(kept), len(again), err)
		}
	})
}

// FuzzOpen: whatever the bytes are, an entry is taken apart or kept whole.
func FuzzOpen(f *testing.F) {
	for _, kind := range []pulsarproto.CompressionType{0, 1, 2, 3, 4} {
		e := batch(f, 1, kind, single{"a", "1"}, single{"b", "2"})
		f.Add(e.Payload, uint32(2))
	}
	f.Fuzz(func(t *testing.T, payload []byte, n uint32) {
		e := ledger.Entry{Payload: payload, NumMessages: n}
		run(t, Options{}, []ledger.Entry{e, e})
	})
}
