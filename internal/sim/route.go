package sim

import "hash/fnv"

// leaderOf is the process that a request to a coordinator goes to: one that says that it serves, now and then any. nil: nobody
// runs.
func (w *world) leaderOf(tc uint64, label string) *process {
	var running, serving []*process
	for _, i := range w.instances {
		p := i.current()
		if p.isDead() {
			continue
		}
		running = append(running, p)
		if p.group.Statuses()[tc].Serving {
			serving = append(serving, p)
		}
	}
	if len(serving) > 0 && !w.happens("misrouted", label, w.mix.misrouted) {
		running = serving
	}
	if len(running) == 0 {
		return nil
	}
	return running[w.chance.below(len(running), "leader", label)]
}

// ownerOf is the process that a request about a topic goes to, now and then another one; nil: nobody runs.
func (w *world) ownerOf(topic, label string) *process {
	var running []*process
	for _, i := range w.instances {
		if p := i.current(); !p.isDead() {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil
	}
	if w.happens("misrouted", label, w.mix.misrouted) {
		return running[w.chance.below(len(running), "owner", label)]
	}
	w.mu.Lock()
	serial := w.serial[topic]
	w.mu.Unlock()
	h := fnv.New32a()
	h.Write([]byte(topic))
	place := w.instances[(int(h.Sum32()%1000)+serial)%len(w.instances)]
	if p := place.current(); !p.isDead() {
		return p
	}
	return running[0]
}
