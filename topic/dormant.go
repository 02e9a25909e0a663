package topic

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// dormant is what is remembered of an unloaded topic that has to be looked at again.
type dormant struct {
	due       time.Time
	mark      endMark // where the log ended when
	idleSince time.Time
	unused    map[string]time.Time // subscriptions, and since when they have no consumers
}

func (t *Topic) dormant(due time.Time) dormant {
	d := dormant{due: due, mark: t.trim.marks[len(t.trim.marks)-1], idleSince: t.idleSince, unused: make(map[string]time.Time)}
	for name, s := range t.subscriptions {
		d.unused[name] = s.unused
	}
	return d
}

// wake makes a topic that is loaded again as it was left.
func (t *Topic) wake(d dormant) {
	t.trim.marks = []endMark{d.mark, t.trim.marks[0]}
	t.idleSince = d.idleSince
	for name, since := range d.unused {
		if s := t.subscriptions[name]; s != nil {
			s.unused = since
		}
	}
}

// encode returns the stored form of what wake needs: a version byte, the mark's ledger and entry (8 bytes each, big endian) and
// time, since when it is idle, then name and time of each subscription in order of the names. Times are varints of Unix ms, names
// stand behind their lengths.
func (d *dormant) encode() []byte {
	out := encodePosition(d.mark.end)
	out = binary.AppendVarint(out, d.mark.at.UnixMilli())
	out = binary.AppendVarint(out, d.idleSince.UnixMilli())
	for _, name := range slices.Sorted(maps.Keys(d.unused)) {
		out = append(binary.AppendUvarint(out, uint64(len(name))), name...)
		out = binary.AppendVarint(out, d.unused[name].UnixMilli())
	}
	return out
}

// decodeDormant reads what encode returns; when it is due is not stored. Errors: *txn.CorruptError.
func decodeDormant(key string, value []byte) (*dormant, error) {
	corrupt := func() (*dormant, error) {
		return nil, &txn.CorruptError{Key: key, Reason: "it ends too early or has an unknown version"}
	}
	if len(value) < 17 || value[0] != 1 {
		return corrupt()
	}
	d := &dormant{unused: make(map[string]time.Time)}
	d.mark.end = ledger.Position{Ledger: binary.BigEndian.Uint64(value[1:]), Entry: binary.BigEndian.Uint64(value[9:])}
	rest := value[17:]
	for _, to := range []*time.Time{&d.mark.at, &d.idleSince} {
		millis, n := binary.Varint(rest)
		if n <= 0 {
			return corrupt()
		}
		*to, rest = time.UnixMilli(millis), rest[n:]
	}
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return corrupt()
		}
		name := string(rest[n : n+int(size)])
		rest = rest[n+int(size):]
		millis, n := binary.Varint(rest)
		if n <= 0 {
			return corrupt()
		}
		d.unused[name], rest = time.UnixMilli(millis), rest[n:]
	}
	return d, nil
}

// leave notes that an unloaded topic has to be looked at again.
func (ts *Topics) leave(name topicname.Name, d dormant) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.dormant[name] = d
}

// revisits bounds the topics that one look at unloaded ones loads, so that many that were used at the same time are not all in
// memory at the same time again.
const revisits = 500

// revisit loads unloaded topics that time has something to do with. One that another instance has loaded is that one's to look
// after.
func (ts *Topics) revisit() {
	for _, name := range ts.due() {
		t, err := ts.load(ts.ctx, name, false)
		if definite(err) {
			ts.mu.Lock()
			delete(ts.dormant, name)
			ts.mu.Unlock()
		}
		var elsewhere *NotOwnerError
		if errors.As(err, &elsewhere) {
			continue
		}
		if err != nil {
			ts.options.Log.Warn().Err(err).Str("topic", name.String()).Msg("topic cannot be loaded, it is looked after later")
			continue
		}
		t.postTick()
	}
}

// due returns the unloaded topics whose time has come.
func (ts *Topics) due() []topicname.Name {
	now := ts.options.Now()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []topicname.Name
	for name, d := range ts.dormant {
		if len(names) == revisits {
			break
		}
		if !now.Before(d.due) {
			names = append(names, name)
		}
	}
	return names
}
