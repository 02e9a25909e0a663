package pulsaradmin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Schemas is the schemas of topics. Errors are package schema's.
type Schemas interface {
	Latest(ctx context.Context, topic topicname.Name) (v schema.Version, found bool, err error)
	At(ctx context.Context, topic topicname.Name, number uint64) (v schema.Version, found bool, err error)
	All(ctx context.Context, topic topicname.Name) ([]schema.Version, error)
	Put(ctx context.Context, topic topicname.Name, s schema.Schema, user string) (uint64, error)
	Find(ctx context.Context, topic topicname.Name, s schema.Schema) (number uint64, found bool, err error)
	CheckCompatibility(ctx context.Context, topic topicname.Name, s schema.Schema) (schema.Strategy, error)
	Delete(ctx context.Context, topic topicname.Name, force bool) (uint64, error)
}

func (h *handler) routeSchemas() {
	h.routeInTopic(topicname.Persistent, "/admin/v2/schemas/{tenant}/{namespace}/{topic}", []topicRoute{
		{"GET", "/schema", find, large(h.getSchema)},
		{"GET", "/schema/{version}", find, large(h.getSchemaVersion)},
		{"GET", "/schemas", find, large(h.getSchemas)},
		{"POST", "/schema", administer, h.postSchema},
		{"DELETE", "/schema", administer, h.deleteSchema},
		{"POST", "/version", find, h.findSchema},
		{"POST", "/compatibility", administer, h.checkSchema},
	})
}

var errSchemaNotFound = &refusal{http.StatusNotFound, "Schema not found"}

// shownSchema is Pulsar's GetSchemaResponse.
type shownSchema struct {
	Version    uint64            `json:"version"`
	Type       string            `json:"type"`
	Timestamp  int64             `json:"timestamp"` // Unix ms
	Data       string            `json:"data"`
	Properties map[string]string `json:"properties"`
}

// show gives the definition as text; that of a key and a value is JSON with two members.
func show(v schema.Version) (shownSchema, error) {
	data, err := dataText(v.Schema)
	if err != nil {
		return shownSchema{}, err
	}
	s := shownSchema{v.Number, v.Type.String(), v.Created.UnixMilli(), data, v.Properties}
	if s.Properties == nil {
		s.Properties = map[string]string{}
	}
	return s, nil
}

// keyValueText is the text of a schema of type KEY_VALUE.
//
// Source: DefaultImplementation.convertKeyValueSchemaInfoDataToString.
type keyValueText struct {
	Key   json.RawMessage `json:"key"`
	Value json.RawMessage `json:"value"`
}

func dataText(s schema.Schema) (string, error) {
	if s.Type != schema.KeyValue {
		return string(s.Data), nil
	}
	key, value, err := s.KeyAndValue()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(keyValueText{partText(key), partText(value)})
	return string(text), err
}

// partText is the definition of a key or a value: a JSON value as it is, everything else as a string.
func partText(s schema.Schema) json.RawMessage {
	if json.Valid(s.Data) {
		return s.Data
	}
	text, err := json.Marshal(string(s.Data))
	if err != nil { // no string is without JSON
		return json.RawMessage(`""`)
	}
	return text
}

// givenSchema is Pulsar's PostSchemaPayload.
type givenSchema struct {
	Type       string            `json:"type"`
	Schema     string            `json:"schema"`
	Properties map[string]string `json:"properties"`
}

func (c *call) schema() (schema.Schema, error) {
	var given givenSchema
	if err := c.need(&given); err != nil {
		return schema.Schema{}, err
	}
	kind, err := schema.ParseType(given.Type)
	if err != nil {
		return schema.Schema{}, err
	}
	s := schema.Schema{Type: kind, Data: []byte(given.Schema), Properties: given.Properties}
	if kind != schema.KeyValue {
		return s, nil
	}
	var pair keyValueText
	if err := json.Unmarshal(s.Data, &pair); err != nil {
		return s, &schema.InvalidError{Reason: "Invalid schema definition data for KEY_VALUE: want JSON with key and value"}
	}
	s.Data = schema.JoinKeyValue(partData(pair.Key), partData(pair.Value))
	return s, nil
}

// partData is partText backwards.
func partData(text json.RawMessage) []byte {
	var plain string
	if json.Unmarshal(text, &plain) == nil {
		return []byte(plain)
	}
	return text
}

func (h *handler) getSchema(c *call, name topicname.Name) (any, error) {
	v, found, err := h.Schemas.Latest(c.Context(), name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errSchemaNotFound
	}
	return show(v)
}

// getSchemaVersion takes a decimal number, as clients that look up over HTTP send it.
func (h *handler) getSchemaVersion(c *call, name topicname.Name) (any, error) {
	number, err := c.number("version", 0)
	if err != nil {
		return nil, err
	}
	v, found, err := h.Schemas.At(c.Context(), name, uint64(number))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errSchemaNotFound
	}
	return show(v)
}

func (h *handler) getSchemas(c *call, name topicname.Name) (any, error) {
	all, err := h.Schemas.All(c.Context(), name)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Schemas []shownSchema `json:"getSchemaResponses"`
	}{[]shownSchema{}}
	for _, v := range all {
		one, err := show(v)
		if err != nil {
			return nil, err
		}
		answer.Schemas = append(answer.Schemas, one)
	}
	return answer, nil
}

// versionAnswer is the version as the wire has it, in base64. Source: PostSchemaResponse, LongSchemaVersion.
type versionAnswer struct {
	Version string `json:"version"`
}

func (h *handler) postSchema(c *call, name topicname.Name) (any, error) {
	s, err := c.schema()
	if err != nil {
		return nil, err
	}
	if _, err := h.namespace(c.Context(), name.NamespaceName()); err != nil {
		return nil, err
	}
	number, err := h.Schemas.Put(c.Context(), name, s, c.caller.Role)
	if err != nil {
		return nil, err
	}
	return versionAnswer{encodeVersion(number)}, nil
}

func encodeVersion(number uint64) string {
	bytes := make([]byte, 8)
	for i := range bytes {
		bytes[i] = byte(number >> (56 - 8*i))
	}
	return base64.StdEncoding.EncodeToString(bytes)
}

// numberAnswer is a version as a number. It is the answer to a deletion, too: the Java client waits for ever for one that is none.
//
// Source: DeleteSchemaResponse, LongSchemaVersionResponse.
type numberAnswer struct {
	Version uint64 `json:"version"`
}

func (h *handler) deleteSchema(c *call, name topicname.Name) (any, error) {
	if _, err := h.namespace(c.Context(), name.NamespaceName()); err != nil {
		return nil, err
	}
	number, err := h.Schemas.Delete(c.Context(), name, c.flag("force"))
	if err != nil {
		return nil, err
	}
	return numberAnswer{number}, nil
}

func (h *handler) findSchema(c *call, name topicname.Name) (any, error) {
	s, err := c.schema()
	if err != nil {
		return nil, err
	}
	number, found, err := h.Schemas.Find(c.Context(), name, s)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errSchemaNotFound
	}
	return numberAnswer{number}, nil
}

func (h *handler) checkSchema(c *call, name topicname.Name) (any, error) {
	s, err := c.schema()
	if err != nil {
		return nil, err
	}
	strategy, err := h.Schemas.CheckCompatibility(c.Context(), name, s)
	var incompatible *schema.IncompatibleError
	if err != nil && !errors.As(err, &incompatible) {
		return nil, err
	}
	return struct {
		Compatible bool            `json:"compatibility"`
		Strategy   schema.Strategy `json:"schemaCompatibilityStrategy"`
	}{err == nil, strategy}, nil
}
