package topic

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// attributes are what is stored with the name of a topic or of a partitioned topic.
type attributes struct {
	Created    int64             `json:"created,omitempty"` // Unix ms
	Properties map[string]string `json:"properties,omitempty"`
}

// maxPropertyBytes bounds the properties of a topic, as JSON.
const maxPropertyBytes = 64 << 10

// oneTopic stands in front of the attributes of a topic; those of a partitioned topic have the number of partitions there.
const oneTopic = 1

// encode returns the stored form: a number, and the attributes as JSON.
func (a attributes) encode(number int) (string, error) {
	encoded, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encode properties: %w", err)
	}
	if len(encoded) > maxPropertyBytes {
		return "", fmt.Errorf("%w: properties of %d bytes, at most %d", txn.ErrNotAllowed, len(encoded), maxPropertyBytes)
	}
	return strconv.Itoa(number) + string(encoded), nil
}

// decodeAttributes reads what encode made. A number alone has no attributes.
func decodeAttributes(key string, value []byte) (number int, a attributes, err error) {
	digits, encoded := string(value), ""
	if i := strings.IndexByte(digits, '{'); i >= 0 {
		digits, encoded = digits[:i], digits[i:]
	}
	number, err = strconv.Atoi(digits)
	if err != nil || number <= 0 {
		return 0, a, &txn.CorruptError{Key: key, Reason: "it does not begin with a positive number"}
	}
	if encoded == "" {
		return number, a, nil
	}
	if err := json.Unmarshal([]byte(encoded), &a); err != nil {
		return 0, a, &txn.CorruptError{Key: key, Reason: err.Error()}
	}
	return number, a, nil
}
