// Package topicfeed tells of persistent topics that come and go, from what etcd says of their names. It promises that every
// change is told, not that everything told is a change: behind a gap in what etcd says, all followers are told that anything may
// have changed, and look for themselves.
package topicfeed
