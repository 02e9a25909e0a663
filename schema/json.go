package schema

import (
	"encoding/json"
	"fmt"
)

// A schema of type JSON is an Avro schema today. Clients before Pulsar 2.1 sent a JSON schema as jackson's generator writes
// it, and such may be stored.

// jsonSchema is what is looked at of that old form.
type jsonSchema struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// parseJSONSchema reads the old form: an object with a type of JSON schemas.
func parseJSONSchema(data []byte) (s jsonSchema, ok bool) {
	if json.Unmarshal(data, &s) != nil {
		return s, false
	}
	switch s.Type {
	case "object", "array", "string", "integer", "number", "boolean", "null", "any":
		return s, true
	}
	return s, false
}

// validateJSON takes both forms. Source: StructSchemaDataValidator.
func validateJSON(data []byte) error {
	_, err := parseAvro(JSON, data)
	if err == nil {
		return nil
	}
	if _, old := parseJSONSchema(data); old {
		return nil
	}
	return err
}

// checkJSON compares two Avro schemas by Avro's rules and two old forms by their ids. One form may follow the other.
//
// Source: JsonSchemaCompatibilityCheck.checkCompatible.
func checkJSON(existing, next []byte, strategy Strategy) error {
	if _, err := parseAvro(JSON, existing); err == nil {
		if _, err := parseAvro(JSON, next); err == nil {
			return checkAvro(existing, next, strategy)
		}
		return nil
	}
	was, wasOld := parseJSONSchema(existing)
	is, isOld := parseJSONSchema(next)
	if wasOld && isOld && was.ID != is.ID {
		return &IncompatibleError{fmt.Sprintf("Incompatible Schema from id %.100q to %.100q", was.ID, is.ID)}
	}
	return nil
}
