package txn

import (
	"fmt"
	"strconv"
	"strings"
)

// ID names one transaction. Most is the number of the coordinator that issued it, Least its sequence number there.
// Both halves are unsigned on the wire and print unsigned here; Pulsar's own texts print them signed.
//
// Source: PulsarApi.proto, txnid_most_bits and txnid_least_bits; TxnID.toString for the text form "(most,least)".
type ID struct {
	Most  uint64
	Least uint64
}

// String returns Pulsar's text form, "(most,least)".
func (id ID) String() string {
	b := make([]byte, 0, 32)
	b = append(b, '(')
	b = strconv.AppendUint(b, id.Most, 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, id.Least, 10)
	return string(append(b, ')'))
}

// ParseID reads the text form, with or without parentheses and with blanks around the numbers, and the form in which the Go
// client prints an id, {most least}.
func ParseID(text string) (ID, error) {
	s := strings.TrimSpace(text)
	separator := ","
	switch {
	case strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")"):
		s = s[1 : len(s)-1]
	case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}"):
		s, separator = s[1:len(s)-1], " "
	}
	most, least, found := strings.Cut(s, separator)
	if !found {
		return ID{}, fmt.Errorf("transaction id %q: want (most,least)", text)
	}
	m, err := strconv.ParseUint(strings.TrimSpace(most), 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("transaction id %q: most significant half: %w", text, err)
	}
	l, err := strconv.ParseUint(strings.TrimSpace(least), 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("transaction id %q: least significant half: %w", text, err)
	}
	return ID{Most: m, Least: l}, nil
}
