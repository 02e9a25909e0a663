package crashpoint

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
)

// errDead is what a killed process hears of its store. Nobody hears of it.
var errDead = errors.New("the process was killed")

// gate holds the writes of all processes until they are released one by one. Reads, renewals and watches pass.
type gate struct {
	arrived chan struct{} // has a token when something may wait

	mu      sync.Mutex // guards the following
	open    bool       // nothing is held
	dead    map[string]bool
	waiting []*effect
}

// effect is a write that is held.
type effect struct {
	*etcdmodel.Request
	text   string
	answer chan error
}

func newGate() *gate {
	return &gate{arrived: make(chan struct{}, 1), dead: map[string]bool{}}
}

func (g *gate) pass(ctx context.Context, r *etcdmodel.Request) error {
	e := g.hold(r)
	if e == nil {
		return g.verdict(r.Client)
	}
	select {
	case err := <-e.answer:
		return err
	case <-ctx.Done():
		g.drop(e)
		return ctx.Err()
	}
}

func (g *gate) verdict(client string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead[client] {
		return errDead
	}
	return nil
}

// hold returns nil if the request is not held.
func (g *gate) hold(r *etcdmodel.Request) *effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open || g.dead[r.Client] || !r.Writes() || r.Kind == etcdmodel.KeepAlive {
		return nil
	}
	e := &effect{r, r.String(), make(chan error, 1)}
	g.waiting = append(g.waiting, e)
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	return e
}

func (g *gate) drop(e *effect) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(one *effect) bool { return one == e })
}

// next is the effect whose turn it is, or nil if none waits, and how many wait.
func (g *gate) next(last bool) (e *effect, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil, 0
	}
	slices.SortStableFunc(g.waiting, func(a, b *effect) int { return cmp.Compare(a.text, b.text) })
	if last {
		return g.waiting[len(g.waiting)-1], len(g.waiting)
	}
	return g.waiting[0], len(g.waiting)
}

// release lets an effect happen and its process hear of it.
func (g *gate) release(e *effect) {
	g.drop(e)
	e.answer <- nil
}

// kill cuts a process off. It returns the effects that it waited for, in order.
func (g *gate) kill(process string) []*effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead[process] = true
	var orphans []*effect
	g.waiting = slices.DeleteFunc(g.waiting, func(e *effect) bool {
		if e.Client != process {
			return false
		}
		orphans = append(orphans, e)
		return true
	})
	slices.SortStableFunc(orphans, func(a, b *effect) int { return cmp.Compare(a.text, b.text) })
	for _, e := range orphans {
		e.answer <- errDead
	}
	return orphans
}

// leaveOpen lets everything pass from now on.
func (g *gate) leaveOpen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	for _, e := range g.waiting {
		e.answer <- nil
	}
	g.waiting = nil
}
