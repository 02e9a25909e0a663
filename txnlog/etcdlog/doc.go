// Package etcdlog is a coordinator's log on etcd: one key for each group commit, written under the fence of a term.
//
// Invariants:
//   - Every write compares the create revision of the leader key with the term and the create revision of its own log key
//     with 0. So a term appends only while it holds, and no index is written twice, however late etcd applies a request.
//   - A settlement is in the etcd transaction of its record, which compares its fences, too.
//   - The pieces of a batch that is too large for one etcd transaction are written one after the other in order; a crash
//     leaves a prefix.
//   - What is not clearly refused is of unknown fate. It is never sent again.
//   - Nothing rests on a transaction without operations: etcd evaluates it on the local state of a member that may be cut
//     off. A proof reads the leader key linearizably in both branches.
//
// Layout: the keys are those of package keyspace. log/<index> holds a value of package txnlog, indexes begin at 1 and have
// no holes. next holds a decimal number. open/<least>/<participant hash> is empty; its existence is what it says.
package etcdlog
