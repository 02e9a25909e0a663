package sim

import (
	"slices"
	"strings"
)

// running are the processes that take requests.
func (w *world) running() []*process {
	var all []*process
	for _, i := range w.instances {
		if p := i.current(); p.takesRequests() {
			all = append(all, p)
		}
	}
	return all
}

// leaderOf is the process that a request to a coordinator goes to: who holds the leader key, now and then any. nil: nobody.
func (w *world) leaderOf(tc uint64, label string) *process {
	return w.route(label, func(running []*process) *process {
		holder, _, _ := strings.Cut(w.value(w.space.Leader(tc)), " ")
		return named(running, holder)
	})
}

// believerIn is one of the processes that believe to lead a coordinator: somebody who asks has been connected to it before. nil:
// nobody does.
func (w *world) believerIn(tc uint64, label string) *process {
	believing := slices.DeleteFunc(w.running(), func(p *process) bool { return !p.group.Statuses()[tc].Serving })
	if len(believing) == 0 {
		return nil
	}
	return believing[w.chance.below(len(believing), "believer", label)]
}

// ownerOf is the process that a request about a topic goes to: the owner; if there is none, who is to be; now and then any. nil:
// nobody.
func (w *world) ownerOf(topic, label string) *process {
	return w.route(label, func(running []*process) *process {
		if w.mix.alone {
			return running[0]
		}
		if owner := named(running, w.value(w.ownerKeys[topic])); owner != nil {
			return owner
		}
		any := running[w.chance.below(len(running), "looked up at", label)]
		return named(running, any.cluster.PlaceTopic(topic).ID)
	})
}

func (w *world) route(label string, find func(running []*process) *process) *process {
	running := w.running()
	if len(running) == 0 {
		return nil
	}
	if w.happens("misrouted", label, w.mix.misrouted) {
		return running[w.chance.below(len(running), "misrouted to", label)]
	}
	return find(running)
}

func named(running []*process, name string) *process {
	if i := slices.IndexFunc(running, func(p *process) bool { return p.name == name }); i >= 0 {
		return running[i]
	}
	return nil
}

// value is what is stored at a key now; empty: nothing.
func (w *world) value(key string) string {
	for _, kv := range w.store.Contents(key) {
		if kv.Key == key {
			return kv.Value
		}
	}
	return ""
}
