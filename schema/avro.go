package schema

import (
	"fmt"
	"regexp"

	"github.com/twmb/avro"
)

// avroName is a part of a name. Java's nested classes have a dollar sign in theirs.
//
// Source: StructSchemaDataValidator.COMPATIBLE_NAME_VALIDATOR.
var avroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

func checkAvroName(name string) error {
	if !avroName.MatchString(name) {
		return fmt.Errorf("illegal name %.100q", name)
	}
	return nil
}

// parseAvro reads an Avro schema. kind is for the error, an *InvalidError.
func parseAvro(kind Type, data []byte) (*avro.Schema, error) {
	parsed, err := avro.Parse(string(data), avro.WithLaxNames(checkAvroName))
	if err != nil {
		return nil, &InvalidError{fmt.Sprintf("Invalid schema definition data for %s schema: %.500s", kind, err)}
	}
	return parsed, nil
}

// checkAvro compares by Avro's rules of schema resolution.
//
// Source: AvroSchemaBasedCompatibilityCheck.
func checkAvro(existing, next []byte, strategy Strategy) error {
	was, err := parseAvro(Avro, existing)
	if err != nil {
		return &IncompatibleError{"the existing schema cannot be read: " + err.Error()}
	}
	is, err := parseAvro(Avro, next)
	if err != nil {
		return &IncompatibleError{err.Error()}
	}
	if strategy.backward() {
		if err := avro.CheckCompatibility(was, is); err != nil {
			return &IncompatibleError{fmt.Sprintf("Incompatible schema: what was written with the existing schema cannot be read with the new one: %.500s", err)}
		}
	}
	if strategy.forward() {
		if err := avro.CheckCompatibility(is, was); err != nil {
			return &IncompatibleError{fmt.Sprintf("Incompatible schema: what is written with the new schema cannot be read with the existing one: %.500s", err)}
		}
	}
	return nil
}
