package schema

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// record returns an Avro record with fields, each a JSON object.
func record(fields ...string) string {
	return `{"type":"record","name":"User","namespace":"a.b","fields":[` + strings.Join(fields, ",") + `]}`
}

const (
	name         = `{"name":"name","type":"string"}`
	age          = `{"name":"age","type":"int"}`
	ageLong      = `{"name":"age","type":"long"}`
	ageDefault   = `{"name":"age","type":"int","default":0}`
	ageNull      = `{"name":"age","type":["null","int"],"default":null}`
	ageNullFirst = `{"name":"age","type":["int","null"],"default":null}`
)

func native(t *testing.T, message string, fields ...string) string {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("a.proto"), Package: proto.String("a"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: &message}},
	}
	for i, field := range fields {
		file.MessageType[0].Field = append(file.MessageType[0].Field, &descriptorpb.FieldDescriptorProto{
			Name: &field, Number: proto.Int32(int32(i + 1)), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(protobufNative{set, "a." + message, "a.proto"})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func keyValue(keyType Type, key string, valueType Type, value string) Schema {
	data := binary.BigEndian.AppendUint32(nil, uint32(len(key)))
	data = binary.BigEndian.AppendUint32(append(data, key...), uint32(len(value)))
	return Schema{KeyValue, append(data, value...), map[string]string{keyTypeProperty: keyType.String(), valueTypeProperty: valueType.String()}}
}

// What each strategy says of a pair: - is for neither way, b for the new reads the old, f for the old reads the new.
func TestCheckFollows(t *testing.T) {
	of := func(kind Type, data string) Schema { return Schema{Type: kind, Data: []byte(data)} }
	for _, c := range []struct {
		about     string
		was, is   Schema
		allowed   string
		otherType bool
	}{
		{about: "the same", was: of(Avro, record(name)), is: of(Avro, record(name)), allowed: "bf"},
		{about: "other layout", was: of(Avro, record(name)), is: of(Avro, " "+record(name)), allowed: "bf"},
		{about: "a field without default added", was: of(Avro, record(name)), is: of(Avro, record(name, age)), allowed: "f"},
		{about: "a field without default removed", was: of(Avro, record(name, age)), is: of(Avro, record(name)), allowed: "b"},
		{about: "a field with default added", was: of(Avro, record(name)), is: of(Avro, record(name, ageDefault)), allowed: "bf"},
		{about: "a field with default removed", was: of(Avro, record(name, ageDefault)), is: of(Avro, record(name)), allowed: "bf"},
		{about: "an optional field added", was: of(Avro, record(name)), is: of(Avro, record(name, ageNull)), allowed: "bf"},
		{about: "null as second branch", was: of(Avro, record(name)), is: of(Avro, record(name, ageNullFirst)), allowed: "bf"},
		{about: "int made long", was: of(Avro, record(age)), is: of(Avro, record(ageLong)), allowed: "b"},
		{about: "int made string", was: of(Avro, record(age)), is: of(Avro, record(`{"name":"age","type":"string"}`)), allowed: ""},
		{about: "int made optional", was: of(Avro, record(age)), is: of(Avro, record(ageNull)), allowed: "b"},
		{about: "an enum that grows", was: of(Avro, `{"type":"enum","name":"E","symbols":["a"]}`), is: of(Avro, `{"type":"enum","name":"E","symbols":["a","b"]}`), allowed: "b"},
		{about: "a Java class inside another", was: of(Avro, `{"type":"record","name":"O$I","fields":[]}`), is: of(Avro, `{"type":"record","name":"O$I","fields":[`+ageNull+`]}`), allowed: "bf"},
		{about: "JSON", was: of(JSON, record(name)), is: of(JSON, record(name, age)), allowed: "f"},
		{about: "Protobuf as Avro", was: of(Protobuf, record(name)), is: of(Protobuf, record(name, age)), allowed: "f"},
		{about: "JSON, old form to Avro", was: of(JSON, `{"type":"object","id":"urn:jsonschema:A"}`), is: of(JSON, record(name)), allowed: "bf"},
		{about: "JSON, Avro to old form", was: of(JSON, record(name)), is: of(JSON, `{"type":"object","id":"urn:jsonschema:A"}`), allowed: "bf"},
		{about: "JSON, old forms of one id", was: of(JSON, `{"type":"object","id":"A"}`), is: of(JSON, `{"type":"object","id":"A","properties":{}}`), allowed: "bf"},
		{about: "JSON, old forms of two ids", was: of(JSON, `{"type":"object","id":"A"}`), is: of(JSON, `{"type":"object","id":"B"}`), allowed: ""},
		{about: "JSON, stored nonsense", was: of(JSON, `nonsense`), is: of(JSON, record(name)), allowed: "bf"},
		{about: "Avro, stored nonsense", was: of(Avro, `nonsense`), is: of(Avro, record(name)), allowed: ""},
		{about: "native, same message", was: of(ProtobufNative, native(t, "M", "x")), is: of(ProtobufNative, native(t, "M", "x", "y")), allowed: "bf"},
		{about: "native, other message", was: of(ProtobufNative, native(t, "M")), is: of(ProtobufNative, native(t, "N")), allowed: ""},
		{about: "a primitive", was: of(String, ""), is: of(String, "null"), allowed: "bf"},
		{about: "two primitives", was: of(Int32, ""), is: of(Int64, ""), otherType: true},
		{about: "Avro and JSON", was: of(Avro, record(name)), is: of(JSON, record(name)), otherType: true},
		{about: "key and value", was: keyValue(Avro, record(name), String, ""), is: keyValue(Avro, record(name, ageDefault), String, ""), allowed: "bf"},
		{about: "key", was: keyValue(Avro, record(name), String, ""), is: keyValue(Avro, record(name, age), String, ""), allowed: "f"},
		{about: "value", was: keyValue(String, "", Avro, record(name, age)), is: keyValue(String, "", Avro, record(name)), allowed: "b"},
		{about: "key and value against each other", was: keyValue(Avro, record(name), Avro, record(name, age)), is: keyValue(Avro, record(name, age), Avro, record(name)), allowed: ""},
		{about: "value of another type", was: keyValue(String, "", Int32, ""), is: keyValue(String, "", Int64, ""), allowed: ""},
	} {
		backward, forward := strings.Contains(c.allowed, "b"), strings.Contains(c.allowed, "f")
		for strategy, want := range map[Strategy]bool{
			Undefined: false, AlwaysIncompatible: false, AlwaysCompatible: true,
			Backward: backward, BackwardTransitive: backward, Forward: forward, ForwardTransitive: forward,
			Full: backward && forward, FullTransitive: backward && forward,
		} {
			err := CheckFollows(c.was, c.is, strategy)
			var refused *IncompatibleError
			if (err == nil) != want || err != nil && !errors.As(err, &refused) {
				t.Errorf("%s, %s: %v, want allowed %v", c.about, strategy, err, want)
			}
			if err != nil && c.otherType && !strings.Contains(err.Error(), "exists schema type "+c.was.Type.String()) {
				t.Errorf("%s: %v", c.about, err)
			}
		}
	}
}

func TestForConsumer(t *testing.T) {
	for strategy, want := range map[Strategy]string{
		Backward: "BACKWARD false", Forward: "BACKWARD false", ForwardTransitive: "BACKWARD false", Full: "BACKWARD false",
		BackwardTransitive: "BACKWARD_TRANSITIVE true", FullTransitive: "FULL_TRANSITIVE true",
		AlwaysIncompatible: "ALWAYS_INCOMPATIBLE true", AlwaysCompatible: "ALWAYS_COMPATIBLE true",
	} {
		as, all := strategy.ForConsumer()
		if got := fmt.Sprintf("%s %v", as, all); got != want {
			t.Errorf("%s: %s, want %s", strategy, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, good := range []Schema{
		{Type: None, Data: []byte("x")}, {Type: Bytes}, {Type: String}, {Type: String, Data: []byte("null")}, {Type: Int32},
		{Type: LocalDateTime}, {Type: Avro, Data: []byte(record(name, ageNull))}, {Type: Avro, Data: []byte(`"string"`)},
		{Type: JSON, Data: []byte(record())}, {Type: JSON, Data: []byte(`{"type":"object","id":"x"}`)},
		{Type: ProtobufNative, Data: []byte(native(t, "M", "f"))},
		keyValue(String, "", Avro, record(name)), keyValue(Bytes, "anything", Bytes, ""),
		{Type: KeyValue, Data: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	} {
		if err := Validate(good); err != nil {
			t.Errorf("%s %q: %v", good.Type, good.Data, err)
		}
	}
	withProperties := keyValue(String, "", String, "")
	withProperties.Properties[keyPropertiesProperty] = `[1]`
	withType := keyValue(String, "", String, "")
	withType.Properties[valueTypeProperty] = "NOTHING"
	deep := strings.Repeat(`{"type":"array","items":`, 100000) + `"int"` + strings.Repeat("}", 100000)
	for _, bad := range []Schema{
		{Type: 21}, {Type: -5}, {Type: Auto}, {Type: AutoConsume}, {Type: AutoPublish}, {Type: Int32, Data: []byte("x")},
		{Type: String, Data: []byte("x")}, {Type: Avro}, {Type: Avro, Data: []byte("{")}, {Type: Avro, Data: []byte(`{"type":"object"}`)},
		{Type: Avro, Data: []byte(record(name, name))}, {Type: Avro, Data: []byte(deep)}, {Type: Protobuf, Data: []byte("x")},
		{Type: JSON, Data: []byte("[")}, {Type: JSON, Data: []byte(`{"type":"thing"}`)}, {Type: JSON, Data: []byte(deep)},
		{Type: ProtobufNative}, {Type: ProtobufNative, Data: []byte("{}")},
		{Type: ProtobufNative, Data: []byte(strings.Replace(native(t, "M"), "a.M", "a.N", 1))},
		{Type: ProtobufNative, Data: []byte(strings.Replace(native(t, "M"), `a.proto"}`, `b.proto"}`, 1))},
		{Type: KeyValue}, {Type: KeyValue, Data: []byte{0, 0, 0, 9, 0, 0, 0, 0}}, {Type: KeyValue, Data: []byte{0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0}},
		{Type: KeyValue, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0, 1}}, keyValue(KeyValue, "", String, ""), keyValue(String, "x", String, ""),
		keyValue(AutoConsume, "", String, ""), withProperties, withType,
	} {
		var invalid *InvalidError
		if err := Validate(bad); !errors.As(err, &invalid) || invalid.Reason == "" || len(invalid.Reason) > 1000 {
			t.Errorf("%s %.50q: %v", bad.Type, bad.Data, err)
		}
	}
}

func TestSame(t *testing.T) {
	of := func(kind Type, data string) Schema { return Schema{Type: kind, Data: []byte(data)} }
	base := of(Avro, record(name, ageDefault))
	for about, c := range map[string]struct {
		a, b Schema
		same bool
	}{
		"itself":            {base, base, true},
		"layout":            {base, of(Avro, "\n"+strings.ReplaceAll(record(name, ageDefault), ",", " , ")), true},
		"documentation":     {base, of(Avro, strings.Replace(record(name, ageDefault), `"name":"User"`, `"doc":"d","name":"User"`, 1)), true},
		"aliases":           {base, of(Avro, strings.Replace(record(name, ageDefault), `"name":"User"`, `"aliases":["X"],"name":"User"`, 1)), true},
		"name as one":       {base, of(Avro, strings.Replace(record(name, ageDefault), `"name":"User","namespace":"a.b"`, `"name":"a.b.User"`, 1)), true},
		"default order":     {base, of(Avro, strings.Replace(record(name, ageDefault), `"default":0`, `"order":"ascending","default":0`, 1)), true},
		"default":           {base, of(Avro, record(name, `{"name":"age","type":"int","default":1}`)), false},
		"no default":        {base, of(Avro, record(name, age)), false},
		"order":             {base, of(Avro, strings.Replace(record(name, ageDefault), `"default":0`, `"order":"ignore","default":0`, 1)), false},
		"property":          {base, of(Avro, strings.Replace(record(name, ageDefault), `"default":0`, `"x":1,"default":0`, 1)), false},
		"property of types": {base, of(Avro, strings.Replace(record(name, ageDefault), `"type":"string"`, `"type":{"type":"string","avro.java.string":"String"}`, 1)), false},
		"logical type":      {of(Avro, `"int"`), of(Avro, `{"type":"int","logicalType":"date"}`), false},
		"inside an array":   {of(Avro, `{"type":"array","items":"int"}`), of(Avro, `{"type":"array","items":{"type":"int","logicalType":"date"}}`), false},
		"inside a map":      {of(Avro, `{"type":"map","values":"int"}`), of(Avro, `{"type":"map","values":{"type":"int","logicalType":"date"}}`), false},
		"inside a union":    {of(Avro, `["null","int"]`), of(Avro, `["null",{"type":"int","logicalType":"date"}]`), false},
		"type":              {base, of(JSON, record(name, ageDefault)), false},
		"properties":        {base, Schema{Avro, base.Data, map[string]string{"a": "b"}}, true},
		"unreadable":        {of(Avro, "x"), base, false},
		"primitives":        {of(String, ""), of(String, "null"), false},
	} {
		if got := NewMatcher(c.b).Same(c.a); got != c.same {
			t.Errorf("%s: same %v", about, got)
		}
		if got := NewMatcher(c.a).Same(c.b); got != c.same {
			t.Errorf("%s, the other way: same %v", about, got)
		}
	}
}
