// Package topic is the embedded persistent topics: producers, subscriptions, and transactions on both, stored in etcd.
//
// One topic is an actor: functions are posted to it and run one after the other, on a goroutine that exists only while there
// is something to run. They touch memory only. At most one write is in flight per topic; everything that waits meanwhile,
// sends, acknowledgements and ends, is in the next one (a group), one etcd transaction. Answers leave after their group is
// durable, in order.
//
// Invariants:
//
//   - Every write compares the mod revision of the topic's owner key, which each load puts anew. So a write that etcd applies
//     after a reload is refused. An unknown result closes the topic: clients are disconnected, nothing definite is answered,
//     the next use loads it again.
//   - Where several instances share the store (Options.Instance), the owner key hangs on the lease of its instance and a load takes
//     it only if it is free or this instance's own. So one instance serves a topic, and what an instance writes that was paused
//     until its lease had ended is refused. A topic that is unloaded gives its owner key up, behind everything that it wrote;
//     when the lease is known to be gone, all topics close.
//   - A transactional send or acknowledgement compares that the open key of its transaction and participant exists. The
//     coordinator deletes it with the decision. So nothing is written behind a decision, and no participant is forgotten.
//     If it does not exist, the coordinator is asked once to register the participant; then the command is refused.
//   - An end is applied behind all commands that came before it, so the fate of the topic's own writes is known.
//   - A commit on loaded topics is in the coordinator's write (Settle): it compares the owner keys, deletes the mark, and puts a key
//     beside what the transaction holds on a subscription, which makes that acknowledged. A transaction is never written about by
//     the topic while its commit is being settled, nor the other way round, so the order of the two in the store is the order in memory.
//     In memory it is done while no write is in flight. The cursors follow with the next groups, and delete what made the commit
//     durable; a load finds either. Nothing takes
//     a topic or a subscription away below a settlement, and a cursor does not go back before those that are done.
//   - Nobody reads at or behind the first entry of the oldest unresolved transaction. An abort deletes the entries of the
//     transaction, and its mark with the last of them. So no reader meets an aborted entry, and none has to be remembered.
//   - An end of a transaction that has nothing here succeeds and stores nothing; a contrary end that comes after the first was
//     applied is one of these, because a participant keeps no record of ended transactions. While an end is being applied,
//     a contrary one is refused with *txn.StatusError (O-6).
//   - Positions are never used twice: the ledger id is the revision at which the load put the owner key.
//   - A producer is exclusive only once its topic epoch is durable. What an older one sent is written before that or never, and it
//     cannot attach under its epoch again.
//   - A send that is refused with an answer for which clients repeat it ends its producer: nothing that came behind it is stored,
//     because the order would be lost, and with deduplication the message. A duplicate is answered when what it repeats is durable.
//   - On Shared and Key_Shared what comes again goes before what waits for its consumer, and that before what was never looked at.
//     Only positions wait, a bounded number, in order by key: no round looks at them all.
//   - Acknowledged entries are deleted when every subscription has acknowledged them, they are older than
//     Options.Retention, counted from the first load for what an earlier run wrote, and the policies do not retain them.
//     Without subscriptions age alone counts.
//   - A compaction writes its entries as a generation of their own, with a number that is used once. One fenced write makes it the
//     one that counts, with the horizon before which everything is compacted; the others are deleted behind that and at a load.
//     It never looks beyond what may be read, and from the first one on nothing is trimmed that is not compacted.
//   - A topic that nobody uses leaves memory after Options.IdleUnload, and nothing stored changes; the next use loads it again.
//     If time will change something of it, old entries, messages or subscriptions that expire, its own deletion, it is loaded
//     for that too, by the process that had it loaded; after a restart its next use is what begins that time anew. Among several
//     instances the next load, wherever it is, finds in the store what the last one knew of these times.
//   - A deletion takes, in one etcd transaction, the name, the owner key, and puts a tombstone for the data; it compares that
//     nobody has loaded the topic since it was looked at. A load takes the owner key only while the name exists with the same id.
//     So a topic is there as a whole or not at all, whoever crashes or comes meanwhile, and one that is made again has
//     another id and other keys. The data goes behind the answer; a start goes on with the tombstones that it finds. An END on
//     a topic or subscription that is gone succeeds.
//   - A terminated topic stays terminated: the key is written behind every message that was taken before, and no message is
//     taken behind it.
//
// The keys are those of keyspace.Topic. Values, all with version byte 1 in front:
//
//	e/...                 ledger.Block
//	c/...                 package compaction
//	dormant               dormant, which the next load deletes
//	m/epoch               topic epoch: 8 bytes, big endian
//	m/compaction          compactionHead
//	m/tail                ledger, entry, bytes of blocks before the ledger and up to its end: 8 bytes each, big endian
//	m/ledger/<ledger>     entry, bytes as above: 8 bytes each, big endian
//	m/terminated          nothing that is read
//	m/dedup/...           package dedup
//	m/txn/<txn>           mark: positions of the first and the last entry, 16 bytes each, then per producer: uvarint length,
//	                      name, uvarint highest sequence id
//	m/sub/.../name        the name, without version byte
//	m/sub/.../properties  per property: uvarint length, key, uvarint length, value; absent: none
//	m/sub/.../frontier, acked, batch    package cursor
//	m/sub/.../pending/.../<number>     package pendingack
//	m/sub/.../pending/.../committed    nothing that is read
package topic
