package recorder

import (
	"fmt"
	"sort"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// describe is a request as a line shows it: its type and its fields in the order of their numbers.
func (r *recording) describe(command *pulsarproto.BaseCommand) string {
	body := bodyOf(command)
	if body == nil {
		return command.GetType().String() + " (no body)"
	}
	return strings.TrimSpace(command.GetType().String() + " " + r.fields(body, true))
}

// shortNames keeps lines readable.
var shortNames = strings.NewReplacer("txnid_most_bits", "most", "txnid_least_bits_of_low_watermark", "lwm",
	"txnid_least_bits", "least", "txn_ttl_seconds", "ttl", "txn_action", "action")

// counted are fields of a command that only count, and say nothing in a line.
var counted = map[protoreflect.Name]bool{
	"request_id": true, "producer_id": true, "consumer_id": true, "sequence_id": true, "highest_sequence_id": true,
}

func (r *recording) fields(m protoreflect.Message, ofCommand bool) string {
	texts := map[int]string{}
	var numbers []int
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if ofCommand && counted[field.Name()] {
			return true
		}
		number := int(field.Number())
		numbers = append(numbers, number)
		texts[number] = shortNames.Replace(string(field.Name())) + "=" + r.fieldValue(field, value)
		return true
	})
	sort.Ints(numbers)
	var parts []string
	for _, number := range numbers {
		parts = append(parts, texts[number])
	}
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("unknown=%x", []byte(unknown)))
	}
	return strings.Join(parts, " ")
}

// fieldValue shows the first three of a long list.
func (r *recording) fieldValue(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if !field.IsList() {
		return r.scalar(field, value)
	}
	var parts []string
	list := value.List()
	for i := range list.Len() {
		if i == 3 && list.Len() > 5 {
			parts = append(parts, fmt.Sprintf("..%d", list.Len()))
			break
		}
		parts = append(parts, r.scalar(field, list.Get(i)))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func (r *recording) scalar(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch field.Kind() {
	case protoreflect.MessageKind:
		if field.Message().Name() == "MessageIdData" {
			return "ID"
		}
		return "{" + r.fields(value.Message(), false) + "}"
	case protoreflect.EnumKind:
		if word := field.Enum().Values().ByNumber(value.Enum()); word != nil {
			return string(word.Name())
		}
		return fmt.Sprint(value.Enum())
	case protoreflect.BytesKind:
		return fmt.Sprintf("%x", value.Bytes())
	case protoreflect.StringKind:
		return fmt.Sprintf("%q", value.String())
	case protoreflect.Uint64Kind:
		if name, ok := r.names[value.Uint()]; ok && strings.Contains(string(field.Name()), "least_bits") {
			return name
		}
	}
	return fmt.Sprint(value.Interface())
}
