// Package etcdstore opens the etcd that everything durable is in and takes care of it: a server of its own inside this process
// (Open), so that a standalone coordinator has a durable, linearizable store and nothing to install; or a cluster that others
// run and that several processes share (Connect).
//
// # Embedded
//
// The member is alone in its cluster and listens nowhere: neither on TCP ports nor on unix sockets. The only way in is the
// client of Store.Client, which calls the server's functions directly. So two standalones on one machine do not meet, and no
// other user of the machine can reach the data except through the files, which are readable by their owner only.
//
// Invariants:
//   - One process has a data directory: the lock file is held with flock(2) from before the server starts until the process
//     is done with it, and names the holder's pid.
//   - Every acknowledged write was synced to the write-ahead log (fsync is never turned off).
//   - History is compacted by this package alone, by bytes written, and never past a pinned revision.
//   - The store is not filled to the brim: Space tells callers to refuse data first and new transactions next, so that
//     transactions that exist can always end.
//   - When the server cannot go on, above all because a write to disk failed, it stops where it is: nothing is acknowledged
//     any more, and Failed says why. The process must end then. The next start loses nothing that was acknowledged.
//
// Layout of the data directory:
//
//	lock            flock(2) of the process that runs on the directory; its content is that process's pid in decimal
//	etcd/member/    etcd's own files: write-ahead log, raft snapshots, key-value backend
//
// # In a cluster
//
// Invariants:
//   - Requests go to members that answer and that belong to the cluster of the start. One of another cluster is refused at the
//     start; if it shows up later it is not used, and an answer of it ends the process. So does a revision that goes back: the
//     cluster was restored from a backup.
//   - Nothing is compacted, defragmented or unlocked, unless ClusterOptions.Manage says so. So Pin holds nothing.
//   - The limits of the members are known: transactions that cannot apply have tried them.
//   - Space follows quota, size and alarms of the members as they were last seen, and every write that etcd refused for lack of
//     space. Such a write may have been applied.
//
// # Both
//
// A space of keys that has keys but no layout version of ours belongs to somebody else and is refused.
//
// The keys in the store are those of package keyspace.
package etcdstore
