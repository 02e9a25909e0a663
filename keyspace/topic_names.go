package keyspace

import (
	"net/url"
	"strings"
)

// AllTopicNames is the prefix of the names of all topics.
func (s Space) AllTopicNames() string { return s.Topics() + "name/" }

// AllPartitioned is the prefix of all partitioned topics.
func (s Space) AllPartitioned() string { return s.Topics() + "partitioned/" }

// ParseTopicName reads a key below AllTopicNames or AllPartitioned.
func (s Space) ParseTopicName(key []byte) (domain, tenant, namespace, topic string, ok bool) {
	_, path, found := strings.Cut(strings.TrimPrefix(string(key), s.Topics()), "/")
	parts := strings.Split(path, "/")
	if !found || len(parts) != 4 {
		return "", "", "", "", false
	}
	for i := range parts {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return "", "", "", "", false
		}
		parts[i] = part
	}
	return parts[0], parts[1], parts[2], parts[3], true
}
