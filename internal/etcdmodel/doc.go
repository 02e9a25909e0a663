// Package etcdmodel is etcd in memory, behind the interfaces of its client: clientv3.KV, Lease and Watcher. Tests run the
// product on it where they must decide what a store does and when.
//
// A Model is the store; a Client is one process that uses it. Every request of a client, renewals of leases and deliveries of
// watches too, passes the client's Gate, which decides when it is applied and whether and when the answer arrives. Without a
// gate a request is applied and answered at once. The contract tests run the same requests on the model and on a real etcd and
// compare all that is answered.
//
// What is as in etcd 3.7: revisions, create revisions, versions; compares over keys and ranges; nested transactions; reads
// with limit, revision, order, bounds, count only and keys only (these name no lease); what of a transaction is refused
// (operations over the limit, keys twice, puts inside a deleted range, empty keys) and that it is refused as a whole before it
// is applied; compaction; leases with keys attached; watches with filters, previous values and gaps; the NOSPACE alarm.
//
// What is not: progress notifications and fragments of watches, GetStream, authentication (a gate gives its errors), the
// size of the database, elections between members. A member that lags behind is a gate that calls Request.ApplyStale.
//
// Invariants:
//   - Time is package time's, so that in a testing/synctest bubble it is virtual: create the model inside the bubble. The
//     model owns no goroutine; a lease's end is a timer. A client owns one for each watch and each lease that it renews, all
//     blocked on channels and timers until there is something to do.
//   - The same requests, applied in the same order at the same times, give the same answers, ids of leases included: nothing
//     draws random numbers or ranges over a map into an answer.
//   - A gate runs without any lock of the model, so that it may wait, and may apply other requests.
package etcdmodel
