package schema

import (
	"bytes"
	"reflect"

	"github.com/twmb/avro"
)

// Matcher compares one schema, which is sound, with many. It parses it once, when that is needed. The zero Matcher is not valid.
type Matcher struct {
	schema Schema
	parsed *avro.Schema
}

// NewMatcher returns a Matcher of s.
func NewMatcher(s Schema) *Matcher { return &Matcher{schema: s} }

// Same reports whether the schema is a version that a topic has in other. Properties do not count, and in Avro schemas neither
// does layout of the text, documentation nor aliases.
//
// Source: SchemaRegistryServiceImpl.getSchemaVersionBySchemaData; org.apache.avro.Schema.equals.
func (m *Matcher) Same(other Schema) bool {
	if m.schema.Type != other.Type {
		return false
	}
	if bytes.Equal(m.schema.Data, other.Data) {
		return true
	}
	if !m.schema.Type.avroBased() {
		return false
	}
	was, err := parseAvro(other.Type, other.Data)
	if err != nil {
		return false
	}
	if m.parsed == nil {
		if m.parsed, err = parseAvro(m.schema.Type, m.schema.Data); err != nil {
			return false
		}
	}
	return bytes.Equal(was.Canonical(), m.parsed.Canonical()) && sameAttributes(was.Root(), m.parsed.Root())
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
