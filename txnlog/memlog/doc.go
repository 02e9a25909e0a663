// Package memlog is a coordinator's log in memory, for tests of what stands on a log. It passes the contract of package
// logtest, stores the same values as the log on etcd, and lets a test decide the fate of every write.
//
// Invariant: a write is applied only if the fence of its log holds at the moment of applying, whenever that is.
package memlog
