package pulsarproto

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The tables under testdata are facts about Pulsar's descriptors: pulsar_api.tsv and pulsar_api_enums.tsv of the one that
// pulsar-client-go v0.21.0 has compiled in, pulsar_api_5.0.0-M1_additions.tsv of what Pulsar 5.0.0-M1's client has beyond it.
const (
	fieldTable    = "testdata/pulsar_api.tsv"
	enumTable     = "testdata/pulsar_api_enums.tsv"
	additionTable = "testdata/pulsar_api_5.0.0-M1_additions.tsv"
)

// readTable returns the rows below the header, each by column name.
func readTable(t *testing.T, path string) []map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma = '\t'
	lines, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// shortName is a full name without our package, as the tables write names.
func shortName(descriptor protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(descriptor.FullName()), "pulsartc.proto.")
}

// describeType writes a field's type as the tables do.
func describeType(field protoreflect.FieldDescriptor) string {
	switch {
	case field.Message() != nil:
		return "message:" + shortName(field.Message())
	case field.Enum() != nil:
		return "enum:" + shortName(field.Enum())
	case field.IsPacked():
		return field.Kind().String() + " (packed)"
	}
	return field.Kind().String()
}

// describeDefault writes a declared default as the tables do.
func describeDefault(field protoreflect.FieldDescriptor) string {
	switch {
	case !field.HasDefault():
		return ""
	case field.Enum() != nil:
		return string(field.DefaultEnumValue().Name())
	}
	return field.Default().String()
}

// fieldKey is "Message.field=number".
func fieldKey(message, field, number string) string { return message + "." + field + "=" + number }

// schemaFields returns all fields of our schema by fieldKey, and the names of its messages.
func schemaFields() (map[string]protoreflect.FieldDescriptor, map[string]bool) {
	fields, names := make(map[string]protoreflect.FieldDescriptor), make(map[string]bool)
	messages := File_pulsartc_pulsar_api_proto.Messages()
	for i := range messages.Len() {
		message := messages.Get(i)
		names[shortName(message)] = true
		for j := range message.Fields().Len() {
			field := message.Fields().Get(j)
			key := fieldKey(shortName(message), string(field.Name()), strconv.Itoa(int(field.Number())))
			fields[key] = field
		}
	}
	return fields, names
}

// schemaEnumValues returns all values of our schema as "Enum.NAME=number".
func schemaEnumValues() map[string]bool {
	values := make(map[string]bool)
	collect := func(enums protoreflect.EnumDescriptors) {
		for i := range enums.Len() {
			for j := range enums.Get(i).Values().Len() {
				value := enums.Get(i).Values().Get(j)
				values[fieldKey(shortName(enums.Get(i)), string(value.Name()), strconv.Itoa(int(value.Number())))] = true
			}
		}
	}
	collect(File_pulsartc_pulsar_api_proto.Enums())
	messages := File_pulsartc_pulsar_api_proto.Messages()
	for i := range messages.Len() {
		collect(messages.Get(i).Enums())
	}
	return values
}

// What a 5.0.0-M1 row says about a type, against what ours may be. Enums whose values the table lacks stand as int32.
func additionFits(tableType string, field protoreflect.FieldDescriptor) bool {
	named, isNamed := strings.CutPrefix(tableType, "message or enum ")
	actual := describeType(field)
	switch {
	case strings.HasPrefix(tableType, "repeated"):
		return field.IsList()
	case field.IsList() || field.Cardinality() != protoreflect.Optional || field.HasDefault():
		return false
	case isNamed && (named == "ScalableConsumerType" || named == "SegmentState"):
		return actual == "int32"
	case isNamed:
		return actual == "message:"+named || actual == "enum:"+named
	}
	return slices.Contains(strings.Split(tableType, " or "), actual)
}

// Rows of 5.0.0-M1 that are not in our schema: txn_ttl_seconds' new name, and the numbers that PIP-255 gives to client_name.
var additionsLeftOut = []string{"CommandEndTxn.scalable=5", "CommandNewTxn.scalable=4", "CommandNewTxn.txn_ttl_millis=2"}

// P-1: what the schema has beyond the tables is PIP-255's.
var fieldsBeyondTables = []string{"CommandEndTxn.client_name=5", "CommandNewTxn.client_name=4"}

func TestFieldsEqualTables(t *testing.T) {
	fields, messages := schemaFields()
	tableMessages := make(map[string]bool)
	for _, row := range readTable(t, fieldTable) {
		tableMessages[row["message"]] = true
		if row["field"] == "-" {
			continue
		}
		key := fieldKey(row["message"], row["field"], row["number"])
		field, ok := fields[key]
		if !ok {
			t.Errorf("%s is missing", key)
			continue
		}
		delete(fields, key)
		got := []string{field.Cardinality().String(), describeType(field), describeDefault(field)}
		if want := []string{row["label"], row["type"], row["default"]}; !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	var leftOut []string
	for _, row := range readTable(t, additionTable) {
		tableMessages[row["message"]] = true
		key := fieldKey(row["message"], row["field"], row["number"])
		field, ok := fields[key]
		if !ok {
			leftOut = append(leftOut, key)
			continue
		}
		delete(fields, key)
		if !additionFits(row["type"], field) {
			t.Errorf("%s is %s %s, want %s", key, field.Cardinality(), describeType(field), row["type"])
		}
	}
	if slices.Sort(leftOut); !slices.Equal(leftOut, additionsLeftOut) {
		t.Errorf("left out of the additions: %q, want %q", leftOut, additionsLeftOut)
	}
	if beyond := slices.Sorted(maps.Keys(fields)); !slices.Equal(beyond, fieldsBeyondTables) {
		t.Errorf("beyond the tables: %q, want %q", beyond, fieldsBeyondTables)
	}
	if !maps.Equal(messages, tableMessages) {
		t.Errorf("messages %v, want %v", slices.Sorted(maps.Keys(messages)), slices.Sorted(maps.Keys(tableMessages)))
	}
	for _, key := range fieldsBeyondTables {
		if field := fields[key]; field != nil && describeType(field) != "string" {
			t.Errorf("%s is %s, want string", key, describeType(field))
		}
	}
}

func TestEnumsEqualTables(t *testing.T) {
	values := schemaEnumValues()
	for _, row := range readTable(t, enumTable) {
		key := fieldKey(row["enum"], row["name"], row["number"])
		if !values[key] {
			t.Errorf("%s is missing", key)
		}
		delete(values, key)
	}
	want := map[string]bool{"ServerError.TransactionPreserverClosed=26": true, "ProtocolVersion.v21=21": true}
	for _, row := range readTable(t, additionTable) {
		if row["message"] == "BaseCommand" {
			want[fieldKey("BaseCommand.Type", strings.ToUpper(row["field"]), row["number"])] = true
		}
	}
	if !maps.Equal(values, want) {
		t.Errorf("beyond the table: %q, want %q", slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(want)))
	}
}

func TestEveryTypeHasItsBody(t *testing.T) {
	fields := new(BaseCommand).ProtoReflect().Descriptor().Fields()
	for number, name := range BaseCommand_Type_name {
		field := fields.ByNumber(protoreflect.FieldNumber(number))
		if field == nil || field.Message() == nil {
			t.Errorf("%s = %d has no body of that number", name, number)
		}
	}
	if bodies := fields.Len() - 1; bodies != len(BaseCommand_Type_name) {
		t.Errorf("%d bodies for %d types", bodies, len(BaseCommand_Type_name))
	}
}

func ExampleServerError() {
	fmt.Println(ServerError_TransactionPreserverClosed, int(ServerError_TransactionPreserverClosed))
	// Output: TransactionPreserverClosed 26
}
