package sim

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/topic"
)

// Mutant is a planted bug: wrappers at the seams of every process. Those that are nil change nothing.
type Mutant struct {
	Name string
	// Bug says what is wrong, for people.
	Bug string

	// KV stands between a process and the store, for everything but leases and watches.
	KV func(*process, clientv3.KV) clientv3.KV
	// Log is the log of a coordinator in one term.
	Log func(p *process, tc uint64, log coordinator.Log) coordinator.Log
	// Leader decides who leads.
	Leader func(*process, coordinator.Leader) coordinator.Leader
	// Participants ends transactions where they wrote.
	Participants func(*process, coordinator.Participants) coordinator.Participants
	// Coordinator and Topics change options.
	Coordinator func(*coordinator.Options)
	Topics      func(*topic.Options)
}

// mutantNamed returns the planted bug of a name; none for the empty one.
func mutantNamed(name string) Mutant {
	for _, m := range Mutants() {
		if m.Name == name {
			return m
		}
	}
	if name != "" {
		panic("no mutant is named " + name)
	}
	return Mutant{}
}

func (m *Mutant) kv(p *process, kv clientv3.KV) clientv3.KV {
	if m.KV == nil {
		return kv
	}
	return m.KV(p, kv)
}

func (m *Mutant) log(p *process, tc uint64, log coordinator.Log) coordinator.Log {
	if m.Log == nil {
		return log
	}
	return m.Log(p, tc, log)
}

func (m *Mutant) leader(p *process, leader coordinator.Leader) coordinator.Leader {
	if m.Leader == nil {
		return leader
	}
	return m.Leader(p, leader)
}

func (m *Mutant) participants(p *process, participants coordinator.Participants) coordinator.Participants {
	if m.Participants == nil {
		return participants
	}
	return m.Participants(p, participants)
}

func (m *Mutant) coordinator(options *coordinator.Options) {
	if m.Coordinator != nil {
		m.Coordinator(options)
	}
}

func (m *Mutant) topics(options *topic.Options) {
	if m.Topics != nil {
		m.Topics(options)
	}
}
