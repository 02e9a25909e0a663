package pulsarproto

import (
	"testing"

	_ "github.com/apache/pulsar-client-go/pulsar" // registers PulsarApi.proto
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// officialCommand returns an empty BaseCommand of the official Go client.
func officialCommand(t *testing.T) protoreflect.ProtoMessage {
	t.Helper()
	messageType, err := protoregistry.GlobalTypes.FindMessageByName("pulsar.proto.BaseCommand")
	if err != nil {
		t.Fatal(err)
	}
	return messageType.New().Interface()
}

// One binary links the official client's schema and ours, and each reads what the other writes.
func TestSameBytesAsOfficialClient(t *testing.T) {
	for _, reply := range replyCases {
		t.Run(reply.name, func(t *testing.T) {
			encoded := mustMarshal(t, reply.want)
			official := officialCommand(t)
			if err := proto.Unmarshal(encoded, official); err != nil {
				t.Fatal(err)
			}
			if unknown := official.ProtoReflect().GetUnknown(); len(unknown) > 0 {
				t.Errorf("the official client does not know % x", unknown)
			}
			back := new(BaseCommand)
			if err := proto.Unmarshal(mustMarshal(t, official), back); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(back, reply.want) {
				t.Errorf("came back as %v, want %v", back, reply.want)
			}
		})
	}
}

func mustMarshal(t testing.TB, message proto.Message) []byte {
	t.Helper()
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
