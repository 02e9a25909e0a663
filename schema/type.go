package schema

import "fmt"

// Type says how messages are encoded and what the data of their schema is. Those from 0 on have the same number on the wire.
//
// Source: pulsar-client-api SchemaType.java.
type Type int32

// The types.
const (
	AutoPublish    Type = -4
	AutoConsume    Type = -3
	Auto           Type = -2
	Bytes          Type = -1
	None           Type = 0
	String         Type = 1
	JSON           Type = 2
	Protobuf       Type = 3
	Avro           Type = 4
	Boolean        Type = 5
	Int8           Type = 6
	Int16          Type = 7
	Int32          Type = 8
	Int64          Type = 9
	Float          Type = 10
	Double         Type = 11
	Date           Type = 12
	Time           Type = 13
	Timestamp      Type = 14
	KeyValue       Type = 15
	Instant        Type = 16
	LocalDate      Type = 17
	LocalTime      Type = 18
	LocalDateTime  Type = 19
	ProtobufNative Type = 20
)

// typeNames are the names that HTTP and the properties of a KeyValue schema use.
var typeNames = map[Type]string{
	AutoPublish: "AUTO_PUBLISH", AutoConsume: "AUTO_CONSUME", Auto: "AUTO", Bytes: "BYTES", None: "NONE", String: "STRING",
	JSON: "JSON", Protobuf: "PROTOBUF", Avro: "AVRO", Boolean: "BOOLEAN", Int8: "INT8", Int16: "INT16", Int32: "INT32",
	Int64: "INT64", Float: "FLOAT", Double: "DOUBLE", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP",
	KeyValue: "KEY_VALUE", Instant: "INSTANT", LocalDate: "LOCAL_DATE", LocalTime: "LOCAL_TIME",
	LocalDateTime: "LOCAL_DATE_TIME", ProtobufNative: "PROTOBUF_NATIVE",
}

var typesByName = func() map[string]Type {
	types := make(map[string]Type, len(typeNames))
	for t, name := range typeNames {
		types[name] = t
	}
	return types
}()

// String returns the name, such as KEY_VALUE.
func (t Type) String() string {
	if name, known := typeNames[t]; known {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// ParseType reads a name as String returns it. Errors: *InvalidError.
func ParseType(name string) (Type, error) {
	t, known := typesByName[name]
	if !known {
		return 0, &InvalidError{fmt.Sprintf("Unknown schema type : %.100q", name)}
	}
	return t, nil
}

// avroBased reports whether the definition is an Avro schema.
//
// Source: SchemaRegistryServiceImpl.isUsingAvroSchemaParser.
func (t Type) avroBased() bool { return t == Avro || t == JSON || t == Protobuf }
