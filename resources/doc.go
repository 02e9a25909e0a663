// Package resources is what administrators say about the cluster: tenants, namespaces with their policies, policies of single
// topics, and clusters. All of it is stored in etcd and held in memory.
//
// Invariants:
//
//   - Reads look at memory only and never wait. A change is in memory when the call that made it returns; changes that others
//     make arrive through a watch. After a gap in the watch everything is read again.
//   - A value in memory carries the mod revision of its key, and an older one never replaces it.
//   - A change reads the stored value, alters it, and writes it if it is still the one that was read; else it starts again.
//   - A namespace is made while its tenant exists, a tenant is deleted while it has no namespace, a namespace while it has no
//     topics, and a topic, or policies of one, are made while the namespace exists: one etcd transaction compares it.
//   - The tenants public and pulsar, the namespaces public/default and pulsar/system and the cluster's own name are put at the
//     start if they are missing.
//
// Values are JSON objects with Pulsar's names; members that nobody here knows are kept. The value "1", which stores written by
// earlier versions have, is an empty object.
//
//	topics/tenant/...      adminRoles, allowedClusters
//	topics/namespace/...   the object of GET /admin/v2/namespaces/{tenant}/{namespace}
//	topics/policies/...    policies of a topic, each under the name that it has for a namespace
//	topics/cluster/...     the object of GET /admin/v2/clusters/{cluster}
package resources
