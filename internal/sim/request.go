package sim

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
)

// errDead is what a process that was killed is answered by the store. Nothing that it does with it is seen by anybody.
var errDead = errors.New("the process was killed")

// storeErrors are errors of an etcd client that leave open what became of the request.
var storeErrors = []error{
	rpctypes.ErrGRPCTimeout, rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCTimeoutDueToLeaderFail,
	rpctypes.ErrGRPCTimeoutDueToConnectionLost, status.Error(codes.Unavailable, "error reading from server: EOF"),
	rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCRequestTooManyRequests,
}

// gate is the way of a request of the process to the store and back, with everything that can happen to it there.
func (p *process) gate(ctx context.Context, r *etcdmodel.Request) error {
	if p.isDead() {
		return errDead
	}
	w := p.world
	if r.Kind == etcdmodel.KeepAlive && w.calm.Load() && !p.unreachedUntil().After(time.Now()) {
		return nil // there is nothing to decide about it
	}
	t := transit{process: p, request: r, label: w.uniqueUnlessAtOnce(p.name + " " + w.describe(r)), answer: make(chan error, 1)}
	switch lost := w.happens("request lost", t.label, w.mix.store.lost); {
	case !lost:
		w.at(p.leaves(w.travel("to store", t.label, w.mix.store.late)), t.label, t.arrive)
	case t.resumed():
		w.at(p.leaves(t.resumes()), t.label+" resumed", t.arrive)
	}
	select {
	case err := <-t.answer:
		return err
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-p.dead:
		return errDead
	}
}

// transit is a request under way.
type transit struct {
	process *process
	request *etcdmodel.Request
	label   string
	answer  chan error
	// revision is that of the store when the request had been applied.
	revision int64
}

// arrive is the request at the store.
func (t *transit) arrive() {
	w, faults := t.process.world, &t.process.world.mix.store
	changes := t.request.Writes() && t.request.Kind != etcdmodel.KeepAlive
	switch {
	case t.process.isDead():
		if !w.happens("applied behind the death", t.label, 0.5) {
			return
		}
	case t.request.Stale():
		t.askMember()
		return
	case t.until().After(time.Now()): // cut off
		w.at(t.until(), t.label+" at last", t.arrive)
		return
	case changes && w.happens("killed before", t.label, faults.killedBefore):
		t.process.kill()
		return
	case w.happens("request refused", t.label, faults.refused):
		t.reply(t.failure())
		return
	}
	if changes && w.happens("applied behind the error", t.label, faults.failedEarly) {
		t.reply(t.failure())
		late := time.Duration(w.chance.below(8000, "applied late by", t.label)) * time.Millisecond
		w.after(late, t.label+" applied late", func() { _ = t.apply() })
		return
	}
	err := t.apply()
	stalls := faults.stalledWriting
	if !t.request.Writes() {
		stalls = faults.stalledReading
	}
	if w.happens("stalled", t.label, stalls) {
		t.process.pause(time.Duration(w.chance.below(8000, "stalled for", t.label)) * time.Millisecond)
	}
	switch {
	case changes && w.happens("killed behind", t.label, faults.killedBehind):
		t.process.kill()
	case w.happens("answer lost", t.label, faults.answerLost):
		if t.resumed() {
			w.after(t.resumes(), t.label+" resumed", func() { t.reply(err) })
		}
	case w.happens("answer is an error", t.label, faults.failed):
		t.reply(t.failure())
	default:
		t.reply(err)
	}
}

// resumed reports whether the request is one of a watch, which a client begins again when it finds its connection dead: what is
// lost of it is late.
func (t *transit) resumed() bool {
	return t.request.Kind == etcdmodel.Watch || t.request.Kind == etcdmodel.Events
}

// resumes draws how long that takes.
func (t *transit) resumes() time.Duration {
	return time.Duration(1000+t.process.world.chance.below(9000, "resumes", t.label)) * time.Millisecond
}

func (t *transit) apply() error {
	err := t.request.Apply()
	t.process.world.oracle.applied(t.process, t.request, err)
	t.revision = t.process.world.store.Revision()
	t.process.world.progress.note(t.revision)
	return err
}

// askMember asks the member at the side of the process, which answers by itself. If the process is cut off, so is the member;
// else it may be somewhat behind.
func (t *transit) askMember() {
	w, p := t.process.world, t.process
	revision := w.store.Revision()
	if at := p.memberRevision(); at > 0 {
		revision = at
	} else if heard := p.hasHeard(); w.chance.below(2, "which member", t.label) == 0 { // the one that answered before
		revision = heard + int64(w.chance.below(int(max(1, revision-heard)), "member has heard", t.label))
	} else if w.happens("member behind", t.label, 0.9) {
		most := 100 << w.chance.below(7, "far behind", t.label) // some heartbeats, or as long as a partition
		behind := time.Duration(w.chance.below(most, "behind by", t.label)) * time.Millisecond
		revision = w.progress.at(time.Now().Add(-behind))
	}
	err := t.request.ApplyStale(revision)
	w.after(w.travel("from member", t.label, 0), t.label+" <", func() {
		if until := p.pausedUntil(); until.After(time.Now()) {
			w.at(until, t.label+" < at last", func() { t.answer <- err })
			return
		}
		t.answer <- err
	})
}

func (t *transit) failure() error {
	return storeErrors[t.process.world.chance.below(len(storeErrors), "which error", t.label)]
}

// reply brings the answer home, when the process runs and can be reached.
func (t *transit) reply(err error) {
	w := t.process.world
	w.after(w.travel("from store", t.label, w.mix.store.answerLate), t.label+" <", func() { t.deliver(err) })
}

func (t *transit) deliver(err error) {
	if until := t.process.unreachedUntil(); until.After(time.Now()) {
		t.process.world.at(until, t.label+" < at last", func() { t.deliver(err) })
		return
	}
	t.process.hears(t.revision)
	t.answer <- err
}

// until is when the store can be reached by the process.
func (t *transit) until() time.Time { return t.process.unreachedUntil() }

// travel draws how long something is under way: some hundred microseconds, or some seconds if it is late.
func (w *world) travel(what, label string, late float64) time.Duration {
	d := time.Duration(w.chance.below(900, what, label)+100) * time.Microsecond
	if w.happens(what+" late", label, late) {
		d += time.Duration(w.chance.below(11_000, what+" late by", label)) * time.Millisecond
	}
	return d
}

// describe names a request by what is the same in every run: the key of its fence, or its first key, and how large it is. The
// order of its operations may not be.
func (w *world) describe(r *etcdmodel.Request) string {
	compares, then, _ := r.Ops()
	var b strings.Builder
	b.WriteString(string(r.Kind))
	b.WriteByte(' ')
	switch {
	case len(compares) > 0:
		b.WriteString(w.short(string(compares[0].Key)))
	default:
		if keys := r.Keys(); len(keys) > 0 {
			b.WriteString(w.short(keys[0]))
		}
	}
	if len(compares) > 1 {
		b.WriteByte('+')
		b.WriteString(strconv.Itoa(len(compares)))
	}
	if len(then) > 1 {
		b.WriteByte('*')
		b.WriteString(strconv.Itoa(len(then)))
	}
	return b.String()
}

// short leaves out what is the same in all keys, and zeros.
func (w *world) short(key string) string {
	key = strings.TrimPrefix(key, w.space.Root())
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); len(part) == 16 {
			parts[i] = "0" + trimmed
		}
	}
	return strings.Join(parts, "/")
}
