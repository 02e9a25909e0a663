package dedup

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// pageRecords and PageBytes bound a page. A name of 1024 bytes fits one.
	pageRecords = 32
	PageBytes   = 2048
	// recordBytes is what a name takes in a page at most, beside its own bytes.
	recordBytes = 3 + 2*binary.MaxVarintLen64
)

// page is some names and what they have stored. A page of a State is never changed: a Draft replaces it.
type page struct {
	records []record
	bytes   int // upper bound of its encoding, without the version
}

type record struct {
	producer string
	highest  uint64
	used     uint64 // minutes of unix time
}

func (p *page) find(producer string) *record {
	if p == nil {
		return nil
	}
	for i := range p.records {
		if p.records[i].producer == producer {
			return &p.records[i]
		}
	}
	return nil
}

func (p *page) room(producer string) bool {
	return p == nil || len(p.records) < pageRecords && p.bytes+len(producer)+recordBytes <= PageBytes
}

func (p *page) add(r record) {
	p.records = append(p.records, r)
	p.bytes += len(r.producer) + recordBytes
}

func (p *page) remove(producer string) {
	for i := range p.records {
		if p.records[i].producer == producer {
			p.records = append(p.records[:i], p.records[i+1:]...)
			p.bytes -= len(producer) + recordBytes
			return
		}
	}
}

func (p *page) clone() *page {
	if p == nil {
		return &page{}
	}
	return &page{records: append(make([]record, 0, len(p.records)+1), p.records...), bytes: p.bytes}
}

func (p *page) encode() []byte {
	out := append(make([]byte, 0, 1+p.bytes), 1)
	for i := range p.records {
		r := &p.records[i]
		out = binary.AppendUvarint(out, uint64(len(r.producer)))
		out = append(out, r.producer...)
		out = binary.AppendUvarint(out, r.highest)
		out = binary.AppendUvarint(out, r.used)
	}
	return out
}

func decodePage(value []byte) (*page, error) {
	if len(value) == 0 || value[0] != 1 {
		return nil, fmt.Errorf("page of producer names of %d bytes", len(value))
	}
	p := &page{}
	rest := value[1:]
	for len(rest) > 0 {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return nil, errors.New("page of producer names ends within a name")
		}
		r := record{producer: string(rest[n : n+int(length)])}
		rest = rest[n+int(length):]
		for _, number := range []*uint64{&r.highest, &r.used} {
			if *number, n = binary.Uvarint(rest); n <= 0 {
				return nil, errors.New("page of producer names ends within a number")
			}
			rest = rest[n:]
		}
		if p.find(r.producer) != nil {
			return nil, fmt.Errorf("page has producer %q twice", r.producer)
		}
		p.add(r)
	}
	return p, nil
}
