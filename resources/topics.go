package resources

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Topic returns the policies of a topic itself, those of the partitioned topic for a partition; nil if it has none. They must
// not be changed.
func (r *Resources) Topic(name topicname.Name) *Policies { return r.topics.get(topicName(name.Base())) }

// UpdateTopic alters the policies of a topic; they stay when the topic does not exist. Errors: ErrNamespaceNotFound, those of
// alter.
func (r *Resources) UpdateTopic(ctx context.Context, name topicname.Name, alter func(Document) error) error {
	switch found, err := r.FindNamespace(ctx, name.NamespaceName()); {
	case err != nil:
		return err
	case found == nil:
		return ErrNamespaceNotFound
	}
	return update(ctx, r, r.topics, alteration{
		name: topicName(name.Base()), within: r.options.Keys.Namespace(name.Tenant, name.Namespace), alter: alter,
	})
}
