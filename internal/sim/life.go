package sim

import (
	"context"
	"time"
)

// kill ends the process between two instructions: nothing that it still does is seen by anybody. Requests that it sent may
// arrive. Another process is started later.
func (p *process) kill() {
	p.state.Lock()
	was := p.isDead()
	if !was {
		close(p.dead)
	}
	p.isStopped = true
	p.state.Unlock()
	if was {
		return
	}
	w := p.world
	p.cancel()
	p.links.breakAll()
	w.reaped.Go(p.bury)
	p.restartLater()
}

// bury waits for the goroutines of a dead process.
func (p *process) bury() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	p.tasks.Wait()
	if p.group != nil {
		p.group.Close()
		p.topics.Close(gone)
	}
	if p.leader != nil {
		p.leader.Close()
	}
	if p.cluster != nil {
		_ = p.cluster.Close(gone) // there is nobody who could tell
	}
	_ = p.client.Close()
}

func (p *process) restartLater() {
	w := p.world
	if w.isOver() {
		return
	}
	pause := time.Duration(50+w.chance.below(4000, "restart", p.name)) * time.Millisecond
	w.after(pause, "start "+p.name+" again", func() {
		if !w.isOver() {
			if w.happens("clock set at the start", p.name, w.mix.clockAtStart) {
				p.instance.setClock(jumpOf(w.chance.draw("clock", p.name)))
			}
			p.instance.start()
		}
	})
}

// stopGrace is how long a stop waits for each of its parts.
const stopGrace = 5 * time.Second

// stop ends the process in order, as SIGTERM does: what it serves goes to others, what waits is answered. Another one is started
// later.
func (p *process) stop() {
	if !p.takesRequests() {
		return
	}
	p.state.Lock()
	was := p.isStopped
	p.isStopped = true
	p.state.Unlock()
	if was {
		return
	}
	w := p.world
	w.reaped.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*stopGrace)
		defer cancel()
		if len(p.cluster.Instances()) > 1 {
			_ = p.cluster.Leave(ctx) // others notice in the end
			p.group.HandOver(ctx)
			p.topics.HandOver(ctx)
		}
		ctx, cancel = context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		p.group.Close()
		p.topics.Close(ctx)
		p.leader.Close()
		_ = p.cluster.Close(ctx) // its lease runs out
		w.after(0, p.name+" stopped", p.kill)
	})
}

// pause makes the process stand still for d: nothing reaches it or leaves it. Timers that run out meanwhile are as if they had
// when it wakes: what comes of them stays inside.
func (p *process) pause(d time.Duration) {
	p.state.Lock()
	defer p.state.Unlock()
	p.pausedTo = time.Now().Add(d)
}

// cutOff keeps process and store from reaching each other for d.
func (p *process) cutOff(d time.Duration) {
	p.state.Lock()
	defer p.state.Unlock()
	p.cutOffTo, p.cutOffAt = time.Now().Add(d), p.world.store.Revision()
}

// memberRevision is what the member at the side of the process knows, if they are cut off from the others; else 0.
func (p *process) memberRevision() int64 {
	p.state.Lock()
	defer p.state.Unlock()
	if !p.cutOffTo.After(time.Now()) {
		return 0
	}
	return p.cutOffAt
}

// hears notes the revision of an answer of the store.
func (p *process) hears(revision int64) {
	p.state.Lock()
	defer p.state.Unlock()
	p.heard = max(p.heard, revision)
}

// hasHeard is the newest revision of which the process has heard.
func (p *process) hasHeard() int64 {
	p.state.Lock()
	defer p.state.Unlock()
	return max(1, p.heard)
}

// heal ends what is wrong with the instance.
func (i *instance) heal() {
	i.mu.Lock()
	i.ahead = 0
	p := i.process
	i.mu.Unlock()
	p.state.Lock()
	defer p.state.Unlock()
	p.pausedTo, p.cutOffTo = time.Time{}, time.Time{}
}

// clockJump bounds by how much one clock is ahead of another.
const clockJump = time.Minute

// setClock has the clock of the instance ahead of the world's.
func (i *instance) setClock(ahead time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ahead = ahead
}

// jumpOf is by how much a clock jumps.
func jumpOf(drawn uint64) time.Duration { return time.Duration(drawn>>8)%clockJump - clockJump/2 }

// jump moves the clock of the instance.
func (i *instance) jump(by time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ahead = by
}

// plan lets the planned faults happen.
func (w *world) plan() {
	for _, f := range w.mix.plan {
		w.after(f.at, f.name, func() {
			if !w.calm.Load() && w.incident(plannedNames[f.kind], f.name) {
				w.strike(f)
			}
		})
	}
}

func (w *world) strike(f planned) {
	i := w.instances[f.which%uint64(len(w.instances))]
	p := i.current()
	switch f.kind {
	case pausing:
		p.pause(f.lasts)
	case cutting:
		p.cutOff(f.lasts)
	case killing:
		p.kill()
	case stopping:
		p.stop()
	case jumping:
		i.jump(jumpOf(f.which))
	case filling:
		w.setFull(true)
		w.after(f.lasts, f.name+" ends", func() { w.setFull(false) })
	case compacting:
		w.compact(f)
	case unloading:
		w.unload(w.topics[f.which>>8%uint64(len(w.topics))])
	case deleting:
		w.delete(p)
	}
}

// compact forgets the history of the store, again and again for a while.
func (w *world) compact(f planned) {
	until := time.Now().Add(f.lasts)
	var again func()
	again = func() {
		if err := w.store.Compact(w.store.Revision()); err == nil {
			w.counted("compacted")
		}
		if time.Now().Before(until) && !w.calm.Load() {
			w.after(50*time.Millisecond, f.name+" again", again)
		}
	}
	again()
}

// unload has the owner of a topic give it up.
func (w *world) unload(name string) {
	p := w.ownerOf(name, "unload "+name)
	if p == nil {
		return
	}
	p.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, stopGrace)
		defer cancel()
		if err := p.topics.Unload(ctx, parsed(name)); err == nil {
			w.counted("topics unloaded")
		}
	})
}

// delete deletes the topic of which nothing is expected.
func (w *world) delete(p *process) {
	if !p.takesRequests() {
		return
	}
	p.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, stopGrace)
		defer cancel()
		if err := p.topics.DeleteTopic(ctx, parsed(w.doomed()), true); err == nil {
			w.counted("topics deleted")
		}
	})
}
