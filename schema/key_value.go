package schema

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// The properties of a KeyValue schema that say what its two halves are.
//
// Source: KeyValueSchemaInfo.java.
const (
	keyTypeProperty         = "key.schema.type"
	keyPropertiesProperty   = "key.schema.properties"
	valueTypeProperty       = "value.schema.type"
	valuePropertiesProperty = "value.schema.properties"
)

// split returns the schemas of key and value. Data has, for each, a length of 4 bytes, big endian, and the definition; the
// length is -1 for none. Errors: *InvalidError.
//
// Source: KeyValueSchemaInfo.decodeKeyValueSchemaInfo, KeyValue.decode.
func split(s Schema) (key, value Schema, err error) {
	if key.Data, s.Data, err = cutSized(s.Data); err != nil {
		return key, value, err
	}
	if value.Data, s.Data, err = cutSized(s.Data); err != nil {
		return key, value, err
	}
	if len(s.Data) > 0 {
		return key, value, &InvalidError{fmt.Sprintf("Invalid schema definition data for KEY_VALUE schema: %d bytes behind the value", len(s.Data))}
	}
	if err := half(s.Properties, keyTypeProperty, keyPropertiesProperty, &key); err != nil {
		return key, value, err
	}
	return key, value, half(s.Properties, valueTypeProperty, valuePropertiesProperty, &value)
}

// KeyAndValue returns the two halves of a schema of type KeyValue. Errors: *InvalidError.
func (s Schema) KeyAndValue() (key, value Schema, err error) { return split(s) }

// JoinKeyValue makes the Data of a schema of type KeyValue from the definitions of its halves.
func JoinKeyValue(key, value []byte) []byte {
	data := binary.BigEndian.AppendUint32(make([]byte, 0, 8+len(key)+len(value)), uint32(len(key)))
	data = binary.BigEndian.AppendUint32(append(data, key...), uint32(len(value)))
	return append(data, value...)
}

func cutSized(data []byte) (sized, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, &InvalidError{"Invalid schema definition data for KEY_VALUE schema: no length of key or value"}
	}
	size := int64(int32(binary.BigEndian.Uint32(data)))
	data = data[4:]
	switch {
	case size == -1:
		return nil, data, nil
	case size < 0 || size > int64(len(data)):
		return nil, nil, &InvalidError{fmt.Sprintf("Invalid schema definition data for KEY_VALUE schema: length %d of %d bytes", size, len(data))}
	}
	return data[:size], data[size:], nil
}

func half(properties map[string]string, typeProperty, propertiesProperty string, s *Schema) error {
	s.Type = Bytes
	if name, found := properties[typeProperty]; found {
		t, err := ParseType(name)
		if err != nil {
			return err
		}
		s.Type = t
	}
	if text := properties[propertiesProperty]; text != "" {
		if err := json.Unmarshal([]byte(text), &s.Properties); err != nil {
			return &InvalidError{fmt.Sprintf("Invalid schema definition data for KEY_VALUE schema: property %s is no JSON object of strings", propertiesProperty)}
		}
	}
	return nil
}

// validateKeyValue checks both halves, which cannot be KeyValue schemas themselves: no client encodes that.
func validateKeyValue(s Schema) error {
	key, value, err := split(s)
	if err != nil {
		return err
	}
	for _, part := range []Schema{key, value} {
		if part.Type == KeyValue {
			return &InvalidError{"Invalid schema definition data for KEY_VALUE schema: key or value is of type KEY_VALUE itself"}
		}
		if err := Validate(part); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyValue compares key with key and value with value.
//
// Source: KeyValueSchemaCompatibilityCheck.checkCompatible.
func checkKeyValue(existing, next Schema, strategy Strategy) error {
	wasKey, wasValue, err := split(existing)
	if err != nil {
		return &IncompatibleError{"the existing schema cannot be read: " + err.Error()}
	}
	isKey, isValue, err := split(next)
	if err != nil {
		return &IncompatibleError{err.Error()}
	}
	if err := CheckFollows(wasKey, isKey, strategy); err != nil {
		return &IncompatibleError{"key: " + err.Error()}
	}
	if err := CheckFollows(wasValue, isValue, strategy); err != nil {
		return &IncompatibleError{"value: " + err.Error()}
	}
	return nil
}
