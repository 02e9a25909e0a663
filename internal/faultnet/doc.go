// Package faultnet is a TCP proxy that fails on command. A test puts a Link between a client and a server and says what becomes
// of the bytes: they pass, slowly or late, they are held, connections break, or break for one end only.
//
// Nothing is decided by chance or by time: a link does what it was told last, to connections that are open and to new ones.
package faultnet
