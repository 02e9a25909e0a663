package sim

import (
	"github.com/pulsar-tc/pulsar-tc/coordinator"
)

// Mutants are the planted bugs. Each must be caught.
func Mutants() []Mutant {
	return []Mutant{
		{Name: "no fence compare", Bug: "a coordinator's writes do not compare the leader key with the term",
			KV: rewrite(withoutFence)},
		{Name: "blind append", Bug: "a coordinator's writes compare neither the leader key nor that the entry does not exist",
			KV: rewrite(withoutCompares)},
		{Name: "empty proof", Bug: "the term is proved by a transaction without operations, which any member answers",
			KV: rewrite(withEmptyProof)},
		{Name: "old leader key", Bug: "a term that ended goes on with the leader key it had",
			Leader: keepLeaderKeys},
		{Name: "halves", Bug: "a batch is written in two transactions, the record and the open keys apart",
			KV: rewrite(inHalves)},
		{Name: "reply before durable", Bug: "effects are performed while the append is under way",
			Log: appendBehind},
		{Name: "call before durable", Bug: "participants are told of a decision before it is appended",
			Log: tellBefore},
		{Name: "serializable load", Bug: "the log is read from one member as it knows it, without the fence",
			KV: func(p *process, kv store) store { return serializableLoad{rewrite(withSerializableLoad)(p, kv)} }},
		{Name: "unfenced not-found", Bug: "answers that rest on the term are given without proving it",
			Log: proveNothing},
		{Name: "ids in memory", Bug: "the bound of used ids is not stored",
			Log: countInMemory},
		{Name: "unpinned load", Bug: "every page of the log is read at the newest revision",
			KV: func(_ *process, kv store) store { return unpinned{kv} }},
		{Name: "deadline restarted", Bug: "a load starts the time to live of open transactions anew",
			Log: restartDeadlines},
		{Name: "two steps", Bug: "the outcome is written behind the deletion of the live record",
			Log: endInTwoSteps},
		{Name: "blind retry", Bug: "a write of unknown fate is repeated, and a false condition taken for its success",
			KV: rewrite(retriedBlindly)},
		{Name: "early eviction", Bug: "outcomes are evicted by count although they are younger than they must become",
			Coordinator: evictEarly},
		{Name: "deadline over commit", Bug: "a load aborts what is past its deadline, although its commit is durable",
			Log: abortOverCommit},
	}
}

// evictEarly keeps one outcome of each name.
func evictEarly(options *coordinator.Options) {
	options.Machine.Preserver.Count, options.Machine.Preserver.UnnamedCount, options.Machine.Preserver.MinTime = 1, 1, 0
}
