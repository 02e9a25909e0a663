// Package authorization decides what a role may do with a topic, a namespace or a tenant.
//
// A super user may do everything. An admin role of a tenant may do everything within the tenant. Others need a grant of the
// action on the namespace or on the topic; a grant on a partitioned topic holds for its partitions. Behind a proxy the
// original principal and the proxy's role must both have the right.
//
// Invariants:
//
//   - Nothing here asks whether a topic, namespace or tenant exists: who has no right gets the same refusal for one that does
//     and one that does not.
//   - Rights that cannot be read are no rights: the error is an Unavailable, never an allowance.
//
// Source: PulsarAuthorizationProvider.allowTopicOperationAsync, allowNamespaceOperationAsync, canConsumeAsync, checkPermission.
package authorization
