package keyspace

import "net/url"

// Schemas is the key space of the schemas of one topic. Its partitions, and topics of the same name in other domains, share
// them, as in Pulsar:
//
//	schemas/<tenant>/<namespace>/<topic>/head            how many versions there have been, and the first that counts
//	schemas/<tenant>/<namespace>/<topic>/version/<number>  a version
//
// Source: TopicName.getSchemaName.
type Schemas struct{ prefix string }

// TopicSchemas returns the key space of a topic's schemas. namespace is its local part, topic the name without partition.
func (s Space) TopicSchemas(tenant, namespace, topic string) Schemas {
	return Schemas{s.NamespaceSchemas(tenant, namespace) + url.PathEscape(topic) + "/"}
}

// NamespaceSchemas is the prefix of the schemas of all topics of a namespace.
func (s Space) NamespaceSchemas(tenant, namespace string) string {
	return s.root + "schemas/" + url.PathEscape(tenant) + "/" + url.PathEscape(namespace) + "/"
}

// Prefix is the prefix of everything of the schemas.
func (s Schemas) Prefix() string { return s.prefix }

// Head is the key that every change compares.
func (s Schemas) Head() string { return s.prefix + "head" }

// Version is the key of a version.
func (s Schemas) Version(number uint64) string {
	return string(appendHex([]byte(s.prefix+"version/"), number))
}
