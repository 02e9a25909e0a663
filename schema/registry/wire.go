package registry

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Wire is a schema in a command.
type Wire = pulsarproto.Schema

// fromWire reads a command's schema.
//
// Source: Commands.getSchemaType.
func fromWire(s *Wire) schema.Schema {
	kind := schema.Type(s.GetType())
	switch {
	case s.GetType() == pulsarproto.Schema_AutoConsume:
		return schema.Schema{Type: schema.AutoConsume}
	case kind < schema.None: // a client's own type for bytes
		kind = schema.None
	}
	out := schema.Schema{Type: kind, Data: s.GetSchemaData()}
	if properties := s.GetProperties(); len(properties) > 0 {
		out.Properties = make(map[string]string, len(properties))
		for _, p := range properties {
			out.Properties[p.GetKey()] = p.GetValue()
		}
	}
	return out
}

// versionBytes is the form of a version number on the wire. Source: LongSchemaVersion.bytes.
func versionBytes(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// Schema answers GET_SCHEMA: the version that is named by 8 bytes, or the latest if version is nil. found is false if there is none.
// Errors: *schema.IncompatibleError for a version of another length.
func (r *Registry) Schema(ctx context.Context, topic topicname.Name, version []byte) (s *Wire, number []byte, found bool, err error) {
	var v schema.Version
	switch {
	case version == nil:
		v, found, err = r.Latest(ctx, topic)
	case len(version) == 0:
		err = &schema.IncompatibleError{Reason: "Empty schema version"}
	case len(version) != 8:
		err = &schema.IncompatibleError{Reason: "schema_version must have 8 bytes"}
	default:
		v, found, err = r.At(ctx, topic, binary.BigEndian.Uint64(version))
	}
	if err != nil || !found {
		return nil, nil, false, err
	}
	return toWire(topic, v), versionBytes(v.Number), true, nil
}

func toWire(topic topicname.Name, v schema.Version) *Wire {
	name, kind := topic.NamespaceName()+"/"+topic.Base().Local, pulsarproto.Schema_Type(v.Type)
	s := &Wire{Name: &name, Type: &kind, SchemaData: v.Data}
	if s.SchemaData == nil {
		s.SchemaData = []byte{} // required
	}
	for _, key := range slices.Sorted(maps.Keys(v.Properties)) {
		value := v.Properties[key]
		s.Properties = append(s.Properties, &pulsarproto.KeyValue{Key: &key, Value: &value})
	}
	return s
}
