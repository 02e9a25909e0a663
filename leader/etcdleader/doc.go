// Package etcdleader decides by etcd who leads a coordinator. A leader is who created the coordinator's leader key; the
// create revision of the key is the number of the term.
//
// Invariants:
//   - A term begins with a key that did not exist: the key of the term before is deleted, and only after that is confirmed a
//     second transaction creates the new one, if there is none. So a write that carries the fence of an earlier term fails
//     from the moment on at which the new term can read, however late etcd applies it.
//   - A process deletes its own key only, any other goes with its lease; unless it has none, or the process is the only one that
//     may write to the store (Options.Exclusive).
//   - A term never writes its key again: its modification revision is the number of the term, too. A leader that reads another
//     one there gives the term up, so that the key names who leads.
//   - Who is to lead (Options.Placement) only says who tries first, and when a leader is to hand over.
//
// Layout of the leader key (keyspace.Space.Leader): the value is the id of the instance that created it, then a blank and the
// host and pid for people. The key is attached to the lease of the term.
package etcdleader
