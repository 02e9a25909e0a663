package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// maxDocument bounds one stored object, in bytes: permissions of a thousand roles with room to spare, and well within a request.
const maxDocument = 256 << 10

// Document is a JSON object whose members nobody has interpreted. A nil Document has none.
type Document map[string]json.RawMessage

// ParseDocument reads a JSON object. null is an empty one.
func ParseDocument(text []byte) (Document, error) {
	document := Document{}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	for name, value := range document {
		if isNull(value) {
			delete(document, name)
		}
	}
	return document, nil
}

// stored is a value of the store as a document.
func stored(value []byte) (Document, error) {
	if string(value) == "1" {
		return Document{}, nil
	}
	return ParseDocument(value)
}

func isNull(value json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(value), []byte("null")) }

// Set puts a member, or takes it away if value encodes to null.
func (d Document) Set(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if isNull(text) {
		delete(d, name)
		return nil
	}
	d[name] = text
	return nil
}

// Decode reads the members that into knows.
func (d Document) Decode(into any) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (d Document) encode() ([]byte, error) {
	text, err := json.Marshal(d)
	if err == nil && len(text) > maxDocument {
		err = &Error{Invalid, fmt.Sprintf("%d bytes of policies, at most %d are kept", len(text), maxDocument)}
	}
	return text, err
}

func (d Document) clone() Document {
	if d == nil {
		return Document{}
	}
	return maps.Clone(d)
}

// Strings returns a member that maps text to text; an absent one is empty.
func (d Document) Strings(name string) (map[string]string, error) {
	strings := map[string]string{}
	if value, ok := d[name]; ok {
		if err := json.Unmarshal(value, &strings); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return strings, nil
}
