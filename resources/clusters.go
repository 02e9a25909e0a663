package resources

import "context"

// Cluster returns a cluster; nil if it does not exist. It must not be changed.
func (r *Resources) Cluster(cluster string) *Document { return r.clusters.get(tenantName(cluster)) }

// Clusters lists the clusters.
func (r *Resources) Clusters() []string { return unescaped(r.clusters.names(""), "") }

// CreateCluster makes a cluster. Errors: ErrClusterExists.
func (r *Resources) CreateCluster(ctx context.Context, cluster string, document Document) error {
	return create(ctx, r, r.clusters, creation{name: tenantName(cluster), document: document, taken: ErrClusterExists})
}

// UpdateCluster alters a cluster. Errors: ErrClusterNotFound, those of alter.
func (r *Resources) UpdateCluster(ctx context.Context, cluster string, alter func(Document) error) error {
	return update(ctx, r, r.clusters, alteration{name: tenantName(cluster), absent: ErrClusterNotFound, alter: alter})
}

// DeleteCluster deletes a cluster; this one comes back with the next start. Errors: ErrClusterNotFound.
func (r *Resources) DeleteCluster(ctx context.Context, cluster string) error {
	revision, err := r.remove(ctx, deletion{key: r.options.Keys.Cluster(cluster), absent: ErrClusterNotFound})
	if err == nil {
		r.clusters.wrote(tenantName(cluster), nil, revision)
	}
	return err
}
