// Package pulsaradmin answers Pulsar's admin REST and HTTP lookup, as far as pulsar-tc has what they are about.
//
//	/admin/v2/tenants, clusters, namespaces        what package resources stores
//	/admin/v2/persistent, non-persistent           topics, their subscriptions, messages and policies
//	/admin/v2/schemas                              schemas of topics
//	/admin/v2/brokers                              the processes that share the store
//	/admin/v3/transactions                         coordinators and transactions
//	/lookup/v2/topic                               where a topic is served
//
// Rules:
//
//   - Errors are JSON objects with one member, reason, and Pulsar's status: 400 for a body that cannot be read, 401 for who may
//     not, 404, 405, 409 for what exists already or is not empty, 412 for a name or a value that breaks a rule.
//   - The right to ask comes before everything else, so a refusal does not tell whether something exists.
//   - Names come out of the path unescaped and are checked before they are used: neither a slash, a dot segment nor a NUL leads
//     to another key.
//   - Bodies are bounded, as are the requests at once, and a panic ends one request.
//   - A partitioned topic is worked on partition by partition; work that failed at one can be repeated for all.
//
// Where several processes share the store, what only the process can answer that serves a topic is answered 307 by others, as in
// Pulsar. A request about several topics is passed on for each that is served elsewhere, once, in the name of its caller.
//
// A policy that has no effect here (see the tables namespacePolicies and topicPolicies) is stored and answered all the same.
// docs/admin.md lists them.
package pulsaradmin
