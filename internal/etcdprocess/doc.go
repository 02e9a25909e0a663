// Package etcdprocess runs a real etcd cluster for tests: members that are processes of their own, on loopback ports that the
// system gives, which a test kills, pauses, fills, compacts, saves and restores.
//
// The binary is package main of go.etcd.io/etcd/server/v3, at the version of go.mod, built once into the user's cache directory.
// A member keeps its ports and its directory over all restarts.
package etcdprocess
