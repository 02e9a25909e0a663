package conn

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// fakeSchemas has one schema, of topic t, and refuses the type Avro.
type fakeSchemas struct{}

func (fakeSchemas) Schema(_ context.Context, name topicname.Name, version []byte) (*pulsarproto.Schema, []byte, bool, error) {
	switch {
	case version != nil && len(version) == 0:
		return nil, nil, false, &schema.IncompatibleError{Reason: "Empty schema version"}
	case name.Local != "t":
		return nil, nil, false, nil
	}
	return wireSchema(pulsarproto.Schema_Json, `"int"`), []byte{0, 0, 0, 0, 0, 0, 0, 3}, true, nil
}

// largeSchemas counts the schemas of 8 KiB that are read.
type largeSchemas struct {
	fakeSchemas
	read atomic.Int32
}

func (l *largeSchemas) Schema(context.Context, topicname.Name, []byte) (*pulsarproto.Schema, []byte, bool, error) {
	l.read.Add(1)
	return wireSchema(pulsarproto.Schema_Json, strings.Repeat("x", 8<<10)), nil, true, nil
}

func (fakeSchemas) AddSchema(_ context.Context, _ topicname.Name, _ Caller, s *pulsarproto.Schema) ([]byte, error) {
	switch s.GetType() {
	case pulsarproto.Schema_None:
		return nil, nil
	case pulsarproto.Schema_Avro:
		return nil, &schema.InvalidError{Reason: "bad"}
	}
	return []byte{0, 0, 0, 0, 0, 0, 0, 4}, nil
}

func wireSchema(kind pulsarproto.Schema_Type, data string) *pulsarproto.Schema {
	return &pulsarproto.Schema{Name: proto.String("s"), Type: &kind, SchemaData: []byte(data)}
}

func getSchemaCommand(requestID uint64, topic string, version []byte) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:      pulsarproto.BaseCommand_GET_SCHEMA.Enum(),
		GetSchema: &pulsarproto.CommandGetSchema{RequestId: &requestID, Topic: &topic, SchemaVersion: version},
	}
}

// GET_SCHEMA fails in its own answer, with a text.
func TestGetSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newBench(t, Options{}).connectedPeer(t)
		p.send(getSchemaCommand(1, "t", nil))
		found := p.want(pulsarproto.BaseCommand_GET_SCHEMA_RESPONSE).GetGetSchemaResponse()
		if found.GetRequestId() != 1 || string(found.GetSchema().GetSchemaData()) != `"int"` || found.GetSchemaVersion()[7] != 3 || found.ErrorCode != nil {
			t.Errorf("answer %v", found)
		}
		for i, c := range []struct {
			topic   string
			version []byte
			code    pulsarproto.ServerError
			text    string
		}{
			{"other", nil, pulsarproto.ServerError_TopicNotFound, "Topic not found or no-schema persistent://public/default/other"},
			{"t", []byte{}, pulsarproto.ServerError_IncompatibleSchema, "Empty schema version"},
			{"a/b", nil, pulsarproto.ServerError_InvalidTopicName, "short name"},
		} {
			p.send(getSchemaCommand(uint64(10+i), c.topic, c.version))
			got := p.want(pulsarproto.BaseCommand_GET_SCHEMA_RESPONSE).GetGetSchemaResponse()
			if got.GetRequestId() != uint64(10+i) || got.Schema != nil || got.GetErrorCode() != c.code || !strings.Contains(got.GetErrorMessage(), c.text) {
				t.Errorf("%s: answer %v", c.topic, got)
			}
		}
	})
}

// No schema is read for a peer that has not read the ones before.
func TestGetSchemaWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{HighWater: 10 << 10, WriteTimeout: time.Hour})
		large := &largeSchemas{}
		b.services.Schemas = large
		b.connectedPeer(t).pipe(bytes.Repeat(encodeFrame(t, getSchemaCommand(1, "t", nil), nil), 20))
		if got := large.read.Load(); got != 2 {
			t.Errorf("%d schemas are read for a peer that does not read", got)
		}
	})
}

func TestGetOrCreateSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newBench(t, Options{}).connectedPeer(t)
		ask := func(requestID uint64, topic string, kind pulsarproto.Schema_Type) *pulsarproto.CommandGetOrCreateSchemaResponse {
			p.send(&pulsarproto.BaseCommand{
				Type: pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA.Enum(),
				GetOrCreateSchema: &pulsarproto.CommandGetOrCreateSchema{
					RequestId: &requestID, Topic: &topic, Schema: wireSchema(kind, ""),
				},
			})
			answer := p.want(pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE).GetGetOrCreateSchemaResponse()
			if answer.GetRequestId() != requestID {
				t.Errorf("answer %v to request %d", answer, requestID)
			}
			return answer
		}
		// Dead letter producers of bytes ask with type None, and get a version that is there, and empty.
		if got := ask(1, "t", pulsarproto.Schema_None); got.SchemaVersion == nil || len(got.SchemaVersion) != 0 || got.ErrorCode != nil {
			t.Errorf("without a schema: %v", got)
		}
		if got := ask(2, "t", pulsarproto.Schema_Json); !bytes.Equal(got.SchemaVersion, []byte{0, 0, 0, 0, 0, 0, 0, 4}) || got.ErrorCode != nil {
			t.Errorf("with a schema: %v", got)
		}
		if got := ask(3, "t", pulsarproto.Schema_Avro); got.GetErrorCode() != pulsarproto.ServerError_IncompatibleSchema || got.GetErrorMessage() != "bad" {
			t.Errorf("with a bad schema: %v", got)
		}
		if got := ask(4, "", pulsarproto.Schema_None); got.GetErrorCode() != pulsarproto.ServerError_InvalidTopicName || got.GetErrorMessage() == "" {
			t.Errorf("of no topic: %v", got)
		}
	})
}
