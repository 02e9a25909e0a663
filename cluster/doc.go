// Package cluster is the processes that share one etcd: which ones live, how they are reached, and which one is to serve what.
//
// Invariants:
//
//   - What is known of others is a hint. A process that acts on it decides by an etcd transaction on the leader key of a
//     coordinator or the owner key of a topic; placement says only who tries first.
//   - A watch wakes, it never tells: what changed is read again, linearizably. A watch that ends, at a compacted revision for
//     example, is one more reason to read, after a pause that grows while reading or watching fails; and it is read every
//     half minute though no watch says anything.
//   - Keys that belong to a live process hang on its session, a lease. When the lease is gone, so are they, and every write
//     that compares them is refused. A new session begins after the lease of the one before was revoked, if etcd answers.
//   - Placement depends on the ids of the live processes and on the name alone, so that processes that see the same agree.
//
// Clocks are compared, not corrected: a record that was just written tells the clock of its instance.
//
// Layout (keyspace.Space.Instance): instances/<id> is the JSON object of an Instance, under the lease of its session. It is
// written again every half minute with the clock of its process.
package cluster
