package schema

import (
	"bytes"
	"reflect"

	"github.com/twmb/avro"
)

// Same reports whether b, which is sound, is a version that a topic has in a. Properties do not count, and in Avro schemas
// neither does layout of the text, documentation nor aliases.
//
// Source: SchemaRegistryServiceImpl.getSchemaVersionBySchemaData; org.apache.avro.Schema.equals.
func Same(a, b Schema) bool {
	if a.Type != b.Type {
		return false
	}
	if bytes.Equal(a.Data, b.Data) {
		return true
	}
	if !a.Type.avroBased() {
		return false
	}
	was, err := parseAvro(a.Type, a.Data)
	if err != nil {
		return false
	}
	is, err := parseAvro(b.Type, b.Data)
	if err != nil {
		return false
	}
	return bytes.Equal(was.Canonical(), is.Canonical()) && sameAttributes(was.Root(), is.Root())
}

// sameAttributes compares what the canonical form leaves out. Both have the same canonical form, so the same shape.
func sameAttributes(a, b *avro.SchemaNode) bool {
	if a.LogicalType != b.LogicalType || a.Precision != b.Precision || a.Scale != b.Scale || a.EnumDefault != b.EnumDefault ||
		a.HasEnumDefault != b.HasEnumDefault || !sameProperties(a.Props, b.Props) {
		return false
	}
	if len(a.Fields) != len(b.Fields) || len(a.Branches) != len(b.Branches) {
		return false
	}
	for i := range a.Fields {
		if !sameField(&a.Fields[i], &b.Fields[i]) {
			return false
		}
	}
	for i := range a.Branches {
		if !sameAttributes(&a.Branches[i], &b.Branches[i]) {
			return false
		}
	}
	return sameNodes(a.Items, b.Items) && sameNodes(a.Values, b.Values)
}

func sameNodes(a, b *avro.SchemaNode) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameAttributes(a, b)
}

func sameField(a, b *avro.SchemaField) bool {
	return a.HasDefault == b.HasDefault && reflect.DeepEqual(a.Default, b.Default) && sortOrder(a) == sortOrder(b) &&
		sameProperties(a.Props, b.Props) && sameAttributes(&a.Type, &b.Type)
}

func sortOrder(f *avro.SchemaField) string {
	if f.Order == "" {
		return "ascending"
	}
	return f.Order
}

func sameProperties(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}
