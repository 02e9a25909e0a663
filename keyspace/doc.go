// Package keyspace names every key that this product stores in etcd. Nobody else builds a key, so the layout is in one
// place and a test can hold it.
//
//	/<prefix>/<cluster>/
//	  meta/schema                              version of this layout, decimal
//	  meta/coordinators                        number of transaction coordinators, decimal, never shrinks
//	  meta/peers                               secret of the instances that share the store, hex
//	  instances/<id>                           a live process, under the lease of its session
//	  tc/<id>/leader                           election key under a lease; its create revision is the term
//	  tc/<id>/next                             upper bound (exclusive) of the ids that may have been used, decimal
//	  tc/<id>/log/<index>                      one group commit of log records
//	  tc/<id>/open/<least>/<participant hash>  exists from ADD until the decision
//	  schemas/...                              the schemas of topics; TopicSchemas documents them
//	  topics/...                               the embedded topics; Space.Topics and Topic document them
//
// Numbers inside keys are fixed-width hex, so that key order is number order.
package keyspace
