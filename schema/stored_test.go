package schema

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

var stored = []Version{
	{},
	{Schema: Schema{Type: KeyValue, Data: []byte{0, 1}, Properties: map[string]string{"b": "2", "a": "1"}}, Created: time.UnixMilli(1234567890123), User: "admin"},
	{Schema: Schema{Type: AutoPublish, Properties: map[string]string{"": ""}}, Created: time.UnixMilli(1)},
}

func TestStored(t *testing.T) {
	for _, v := range stored {
		if v.Created.IsZero() {
			v.Created = time.UnixMilli(0)
		}
		if v.Data == nil {
			v.Data = []byte{}
		}
		got, err := Decode(Encode(v))
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%+v came back as %+v, %v", v, got, err)
		}
	}
	// The layout: a change here is a change of what is stored.
	v := Version{Schema: Schema{Type: JSON, Data: []byte("d"), Properties: map[string]string{"k": "v"}}, Created: time.UnixMilli(300), User: "u"}
	if got, want := Encode(v), []byte{1, 4, 0xac, 2, 1, 'u', 1, 'd', 1, 1, 'k', 1, 'v'}; !bytes.Equal(got, want) {
		t.Errorf("layout % x, want % x", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range stored {
		f.Add(Encode(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(Encode(v))
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("% x: %+v became %+v, %v", data, v, again, err)
		}
	})
}

// Whatever a client sends as a definition is accepted or refused, and what is accepted is the same as itself, follows itself
// and does not bring down what compares it.
func FuzzDefinition(f *testing.F) {
	for _, data := range []string{record(name, ageNull), `"int"`, `{"type":"object","id":"x"}`, `{"fileDescriptorSet":"","rootMessageTypeName":"a"}`} {
		for _, kind := range []int32{int32(Avro), int32(JSON), int32(ProtobufNative)} {
			f.Add(kind, []byte(data), "AVRO", `{}`)
		}
	}
	f.Add(int32(KeyValue), keyValue(Avro, record(name), String, "").Data, "AVRO", `{"a":"b"}`)
	f.Fuzz(func(t *testing.T, kind int32, data []byte, keyType, properties string) {
		s := Schema{Type(kind), data, map[string]string{keyTypeProperty: keyType, keyPropertiesProperty: properties}}
		if Validate(s) != nil {
			return
		}
		if !NewMatcher(s).Same(s) {
			t.Error("it is not the same as itself")
		}
		if err := CheckFollows(s, s, FullTransitive); err != nil {
			t.Errorf("it does not follow itself: %v", err)
		}
	})
}
