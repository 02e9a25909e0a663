// Package chaos holds the tests of several instances on an etcd cluster of three members, all real processes, whose every link
// goes through a proxy: client to instance, instance to instance, instance to etcd, etcd to etcd. A nemesis kills and pauses
// processes, cuts, holds and slows links, moves etcd's leader, compacts and defragments etcd, raises its alarm of no space, and
// lets instances leave and join, while the clients of package workload work; package history judges everything that they saw.
// After each fault every coordinator and every topic has to serve again in time; how long that took is reported.
//
// go test runs a short version. With -time it is the whole one, as ./test chaos runs it. A seed repeats the faults, not what the
// processes make of them.
package chaos
