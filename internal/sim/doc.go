// Package sim simulates a whole cluster in one process: instances that run the product's own coordinators, logs, elections and
// topics, a store with etcd's semantics, clients, and the network between them all, in virtual time. Everything that the
// simulation decides, faults included, is drawn from one seed.
//
// A bubble of testing/synctest is the world. Whatever passes a seam waits as an event of the scheduler: a request to the store
// and its answer, a message between client and instance or between two instances, a fault. The scheduler lets one event happen,
// waits until nothing in the bubble can go on by itself, and takes the next. So the order is that of the delays, which are drawn.
//
// Every draw depends on the seed and on the name of what it is about, not on what was drawn before. So a step of a client or a
// fault can be taken out of a schedule, and the rest stays nearly the same: that is how a schedule which breaks a rule is made
// small.
//
// Rules are checked where they can be broken, by an oracle that reads every log entry as it becomes durable, and in the end,
// after the faults have ended, by package history.
package sim
