package schema

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"
)

const layout = 1

// Encode returns v as it is stored, without its number, which its key has.
func Encode(v Version) []byte {
	b := []byte{layout}
	b = binary.AppendVarint(b, int64(v.Type))
	b = binary.AppendUvarint(b, uint64(v.Created.UnixMilli()))
	b = appendBytes(b, []byte(v.User))
	b = appendBytes(b, v.Data)
	b = binary.AppendUvarint(b, uint64(len(v.Properties)))
	for _, key := range slices.Sorted(maps.Keys(v.Properties)) {
		b = appendBytes(b, []byte(key))
		b = appendBytes(b, []byte(v.Properties[key]))
	}
	return b
}

func appendBytes(b, value []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

var errStored = errors.New("it is no stored schema")

// Decode reads what Encode wrote. The result refers to stored.
func Decode(stored []byte) (Version, error) {
	var v Version
	if len(stored) < 1 || stored[0] != layout {
		return v, errStored
	}
	d := decoder{rest: stored[1:]}
	v.Type = Type(d.signed())
	v.Created = time.UnixMilli(int64(d.unsigned()))
	v.User = string(d.bytes())
	v.Data = d.bytes()
	for n := d.unsigned(); n > 0 && !d.failed; n-- {
		if v.Properties == nil {
			v.Properties = make(map[string]string)
		}
		key := string(d.bytes())
		v.Properties[key] = string(d.bytes())
	}
	if d.failed || len(d.rest) > 0 {
		return Version{}, errStored
	}
	return v, nil
}

// decoder takes fields off the front. After a failure every field is zero.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() { d.failed, d.rest = true, nil }

func (d *decoder) unsigned() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > math.MaxInt64 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) signed() int32 {
	n, size := binary.Varint(d.rest)
	if size <= 0 || n < math.MinInt32 || n > math.MaxInt32 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return int32(n)
}

func (d *decoder) bytes() []byte {
	size := d.unsigned()
	if size > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	value := d.rest[:size:size]
	d.rest = d.rest[size:]
	return value
}
