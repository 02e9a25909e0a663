// Package nonpersistent serves non-persistent:// topics: a message goes to the consumers that are connected and have permits
// at that moment, and nowhere else. Nothing is stored, nothing is delivered twice.
//
// A topic exists while it has producers or consumers, a subscription while it has consumers. Sends are delivered on the
// goroutine of their connection, under the lock of the topic; no end of a client blocks.
//
// Transactions have no part here: a send in one is refused with NotAllowedError on a connection that stays open (Pulsar 4.0.7
// drops the connection, and the client repeats for ever), an acknowledgement in one is a conflict.
//
// Source: NonPersistentTopic, NonPersistentSubscription and the NonPersistentDispatchers of Pulsar.
package nonpersistent
