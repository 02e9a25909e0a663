// Package terminatedtopic serves persistent://pulsar/system/__terminated_txn_state_<tc>, the read-only compacted view of the
// outcomes that coordinator tc keeps (P-18 to P-22, P-25). Nothing is stored for it: the coordinator's outcomes are the topic.
//
// There is one message per client name, keyed by the name; docs/terminated-txn-state.md says what is in it. A name without
// outcomes has a tombstone. Its message id is 1:<place>, the place of the newest change of the name: an outcome, or the
// forgetting of some. Places are given by the coordinator, only grow, also over restarts, and are durable before anybody
// hears of them. A name that changes moves behind all others, so a reader that comes back with the last id it saw is given
// each name that changed since, and a slow reader is given a busy name once, as it is then.
//
// Memory: while anybody reads there is an entry per client name, and nothing of what the messages hold. Of names that became
// empty the last tombstones are remembered, always. Cursors of subscriptions are kept in memory, a bounded number; a restart
// forgets them.
//
// The coordinator's goroutine is asked for names and outcomes, a bounded number at a time, and otherwise tells changes; it
// waits for nobody. When its term ends, all readers are disconnected and come again.
package terminatedtopic
