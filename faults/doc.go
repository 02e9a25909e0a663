// Package faults holds the tests of the fault catalogue that need a whole server in a process of its own: what users of such
// systems met, tried again here. Each names the case it holds, FC-nn.
//
// With FAULTS_STORE=etcd in the environment servers that need no store of their own use an etcd cluster, a process for each.
package faults
