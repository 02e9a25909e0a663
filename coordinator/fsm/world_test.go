package fsm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// world is a machine and its twin, which must do the same byte for byte, with a store, clients and participants around them.
type world struct {
	opts    fsm.Options
	store   *store
	m, twin *fsm.Machine
	now     int64
	latest  int64 // what the clock had shown at most at the last load
	space   fsm.SpaceLevel
	cleaned bool // the batch has a Cleaned already
	truth   truth

	requests int
	asked    map[int]request       // not answered yet
	answered map[uint64]bool       // ids that a client knows
	promised map[uint64]txn.Action // what anybody was told
	unknown  map[uint64]bool       // ids that are not found any more, as somebody was told
	calls    []fsm.Decision        // participants that have not been told yet
	applied  map[uint64]map[txn.Participant]bool
	mark     int64 // highest low water mark told
}

// request is what a client waits for.
type request struct {
	kind         string
	least        uint64
	action       txn.Action
	caller       fsm.Caller
	named        bool
	participants []txn.Participant
}

func newWorld(t *rapid.T, opts fsm.Options) *world {
	w := &world{
		opts: opts, store: newStore(), now: 1_000_000, mark: -1 << 62,
		truth:    truth{opened: map[uint64]*life{}},
		answered: map[uint64]bool{}, promised: map[uint64]txn.Action{}, unknown: map[uint64]bool{}, applied: map[uint64]map[txn.Participant]bool{},
	}
	w.restart(t)
	return w
}

// step gives a command to both machines.
func (w *world) step(cmd fsm.Command) {
	w.m.Step(w.now, cmd)
	w.twin.Step(w.now, cmd)
}

// ask gives a client's command to both machines; put sets the command's To.
func (w *world) ask(r request, make func(to any) fsm.Command) {
	w.requests++
	w.asked[w.requests] = r
	w.step(make(w.requests))
}

// fate is what happens to a batch.
type fate int

const (
	durable    fate = iota
	lost            // crash before the append
	unanswered      // crash behind the append
	torn            // crash while the append is under way: the beginning is durable
)

// commit takes what the steps left, checks it, and lets it meet its fate.
func (w *world) commit(t *rapid.T, f fate) {
	ready, other := w.m.Take(), w.twin.Take()
	w.cleaned = false
	w.settle(t, ready, other, f)
}

func (w *world) settle(t *rapid.T, ready, other *fsm.Ready, f fate) {
	text := render(ready, w.store.end())
	if twin := render(other, w.store.end()); text != twin {
		t.Fatalf("the same commands gave\n%s\nand\n%s", text, twin)
	}
	t.Log("\n" + strings.TrimRight(text, "\n"))
	if w.space == fsm.SpaceRefuseEnd && ready.Writes() {
		t.Fatalf("a full store is written to:\n%s", text)
	}
	n := len(ready.Batch.Changes)
	switch f {
	case lost:
		w.restart(t)
		return
	case torn:
		n = rapid.IntRange(0, n).Draw(t, "durable changes")
	}
	if ready.Writes() {
		w.append(t, &ready.Batch, n)
	}
	switch f {
	case durable:
		all := effects(ready)
		for i := range all {
			w.perform(t, &all[i])
		}
	case unanswered:
		w.crash(t)
	case torn:
		w.restart(t)
	}
}

func (w *world) append(t *rapid.T, batch *txn.Batch, n int) {
	at := w.store.append(batch, n)
	for i := range batch.Changes[:n] {
		w.truth.record(t, &batch.Changes[i].Record)
		if batch.Changes[i].Settlement != nil {
			w.settled(t, &batch.Changes[i])
		}
	}
	w.m.Appended(at)
	w.twin.Appended(at)
}

// settled takes note that participants have applied a commit with its decision.
func (w *world) settled(t *rapid.T, c *txn.Change) {
	if c.Record.Status != txn.Committed || !c.CloseAll {
		t.Fatalf("a settlement with %s", change(c))
	}
	least := c.Record.Least
	if w.applied[least] == nil {
		w.applied[least] = map[txn.Participant]bool{}
	}
	for _, name := range c.Settlement.Puts {
		w.applied[least][participant(name)] = true
	}
}

// crash loses the machine and compares the one that the log gives with it.
func (w *world) crash(t *rapid.T) {
	before := w.state()
	w.restart(t)
	if after := w.state(); before != after {
		t.Fatalf("the state was\n%s\nand is after the load\n%s", before, after)
	}
}

// restart loads the log. What clients waited for is never answered.
func (w *world) restart(t *rapid.T) {
	w.latest = max(w.latest, w.now)
	w.asked, w.calls = map[int]request{}, nil
	var ready, other *fsm.Ready
	var err, otherErr error
	w.m, ready, err = w.store.load(w.opts, w.now, w.space)
	w.twin, other, otherErr = w.store.load(w.opts, w.now, w.space)
	if err != nil || otherErr != nil {
		t.Fatalf("load: %v, %v", err, otherErr)
	}
	w.settle(t, ready, other, durable)
}

// state describes what a load must find again: every live transaction but for what participants have answered and what was
// refused in this term, and every outcome. Behind a clock that jumped back outcomes that count had cut may be protected by their age again.
func (w *world) state() string {
	m := w.m
	m.Step(w.now, &fsm.List{To: 0})
	var b strings.Builder
	for _, d := range effects(m.Take())[0].Descriptions {
		for i := range d.Participants {
			p := &d.Participants[i]
			p.Done, p.Attempts, p.Failure = p.Resolved, 0, ""
		}
		d.Held = false
		b.WriteString(describe(&d) + "\n")
	}
	if w.now < w.latest {
		return b.String()
	}
	for _, least := range w.ids() {
		if o, key, ok := m.Outcomes().Get(least, w.now); ok {
			fmt.Fprintf(&b, "outcome %+v %v\n", o, key)
		}
	}
	return b.String()
}

// ids are all ids ever durable, in order.
func (w *world) ids() []uint64 {
	all := make([]uint64, 0, len(w.truth.opened))
	for least := range w.truth.opened {
		all = append(all, least)
	}
	slices.Sort(all)
	return all
}

// perform does one effect and checks that it is true.
func (w *world) perform(t *rapid.T, e *fsm.Effect) {
	switch e.Kind {
	case fsm.Reply:
		r, waits := w.asked[e.To.(int)]
		if !waits {
			t.Fatalf("request %v is answered twice", e.To)
		}
		delete(w.asked, e.To.(int))
		w.reply(t, e, r)
	case fsm.Drive:
		w.drive(t, e)
	case fsm.Ended:
		if l := w.truth.opened[e.ID.Least]; l.ended == 0 {
			t.Fatalf("%s is reported as ended", e.ID)
		}
	}
}

func (w *world) drive(t *rapid.T, e *fsm.Effect) {
	d := &e.Decision
	w.promise(t, d.ID().Least, d.Action())
	mark := int64(d.LowWaterMark())
	if mark < w.mark || mark >= int64(w.truth.lowestLive()) {
		t.Fatalf("low water mark %d after %d, lowest live id %d (TC-17)", mark, w.mark, w.truth.lowestLive())
	}
	w.mark = mark
	if !w.truth.opened[d.ID().Least].added[d.Participant()] {
		t.Fatalf("%s is told of %s, of which it is no part", d.Participant(), d.ID())
	}
	w.calls = append(w.calls, *d)
}

// promise takes note that somebody was told how a transaction was decided: it must be durable and stay so (promises 1 and 2).
func (w *world) promise(t *rapid.T, least uint64, action txn.Action) {
	if is, isDecided := w.truth.action(least); !isDecided || is != action {
		t.Fatalf("%d is told to be %s, the log says %s, decided %t", least, action, is, isDecided)
	}
	if before, ever := w.promised[least]; ever && before != action {
		t.Fatalf("%d was %s and is %s", least, before, action)
	}
	if w.unknown[least] {
		t.Fatalf("%d was not found and is %s", least, action)
	}
	w.promised[least] = action
}

func (w *world) reply(t *rapid.T, e *fsm.Effect, r request) {
	var status *txn.StatusError
	var notFound *txn.NotFoundError
	l := w.truth.opened[r.least]
	switch {
	case errors.As(e.Err, &status):
		action, _ := status.Got.Decided()
		w.promise(t, r.least, action)
	case errors.As(e.Err, &notFound):
		if l != nil && mayAct(r.caller, l.owner) && (l.ended == 0 || l.ended+w.opts.Preserver.MinTime > max(w.now, w.latest)) {
			t.Fatalf("%d, %s, ended %d, is not found", r.least, l.status, l.ended)
		}
		if l != nil && mayAct(r.caller, l.owner) {
			w.unknown[r.least] = true
		}
	case e.Err != nil:
		w.refused(t, e.Err, r)
	case r.kind == "new":
		if w.answered[e.ID.Least] || w.truth.opened[e.ID.Least] == nil {
			t.Fatalf("id %d is not new or not durable", e.ID.Least)
		}
		w.answered[e.ID.Least] = true
	case r.kind == "add":
		for _, p := range r.participants {
			if !l.added[p] {
				t.Fatalf("%d answered the ADD of %s, which is not durable", r.least, p)
			}
		}
	case r.kind == "end":
		w.promise(t, r.least, r.action)
		for p := range l.added {
			if !w.applied[r.least][p] && !l.resolved[p] {
				t.Fatalf("%d is answered, %s has not applied it (promise 3)", r.least, p)
			}
		}
	case r.kind == "describe":
		if action, isDecided := e.Descriptions[0].Status.Decided(); isDecided {
			w.promise(t, r.least, action)
		}
	}
}

// refused checks the answers that promise nothing.
func (w *world) refused(t *rapid.T, err error, r request) {
	switch {
	case errors.Is(err, txn.ErrPreserverClosed) && (!r.named || w.space != fsm.SpaceRefuseEnd):
		t.Fatalf("26 to a request without a name, or with space (P-3): %v", err)
	case errors.Is(err, txn.ErrNotReady) && w.space == fsm.SpaceNormal:
		t.Fatalf("6 with space: %v", err)
	}
}

func mayAct(caller fsm.Caller, owner txn.Owner) bool {
	return !owner.Known || caller.Super || caller.Owner == owner
}
