package fsm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/coordinator/cleaning"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const longestTTL = 5_000

var owners = []txn.Owner{{}, {Role: "alice", Known: true}, {Role: "bob", Known: true}}

// TestCrashes lets clients, participants, operators, deadlines and log cleaning work on one coordinator that crashes before,
// in and behind its appends, and holds it to the promises: one outcome per transaction, no id twice, definite answers that never
// contradict, success only when all is done, the same state after every load, an end for every transaction, and memory and log
// that follow what is live and kept.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, fsm.Options{
			TC: 1, MaxTTLMillis: longestTTL, MaxActive: 20, MaxParticipants: 6,
			Preserver: preserver.Options{
				Count:        rapid.IntRange(0, 3).Draw(t, "count"),
				UnnamedCount: rapid.IntRange(1, 3).Draw(t, "unnamed count"),
				Retention:    rapid.Int64Range(1_000, 20_000).Draw(t, "retention"),
				Max:          1000, NamesPerOwner: 2,
			},
		})
		if w.opts.Preserver.Count > 0 {
			w.opts.Preserver.MinTime = rapid.Int64Range(0, 1_000).Draw(t, "min time")
			w.restart(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"batch": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "commands") {
					w.command(t)
				}
				w.commit(t, rapid.SampledFrom([]fate{durable, durable, durable, durable, lost, unanswered, torn}).Draw(t, "fate"))
			},
			"wait":  func(t *rapid.T) { w.now += rapid.Int64Range(1, 2_000).Draw(t, "ms") },
			"crash": func(t *rapid.T) { w.crash(t) },
			"clock jumps back": func(t *rapid.T) {
				w.crash(t)
				w.now -= rapid.Int64Range(1, 5_000).Draw(t, "ms")
				w.restart(t)
			},
			"": w.bounded,
		})
		w.finish(t)
	})
}

// command draws one.
func (w *world) command(t *rapid.T) {
	draw := map[string]func(*rapid.T){
		"new": w.newTxn, "add": w.add, "end": w.end, "call": w.call, "clean": w.clean, "space": w.changeSpace,
		"resolve":  w.resolve,
		"describe": w.describe,
		"tick":     func(t *rapid.T) { w.step(&fsm.Tick{Expire: rapid.Bool().Draw(t, "expire")}) },
	}
	draw[rapid.SampledFrom([]string{
		"new", "new", "new", "add", "add", "add", "end", "end", "end", "call", "call", "call", "call",
		"tick", "clean", "space", "resolve", "describe",
	}).Draw(t, "command")](t)
}

func (w *world) newTxn(t *rapid.T) {
	owner := rapid.SampledFrom(owners).Draw(t, "owner")
	name := rapid.SampledFrom([]string{"", "", "flink", "spark", "third"}).Draw(t, "name")
	ttl := rapid.Uint64Range(1, longestTTL).Draw(t, "ttl")
	w.ask(request{kind: "new", named: name != ""}, func(to any) fsm.Command {
		return &fsm.NewTxn{To: to, Owner: owner, ClientName: name, Named: name != "", TTLMillis: ttl}
	})
}

// least draws an id, mostly of a transaction that exists.
func (w *world) least(t *rapid.T) uint64 {
	if ids := w.ids(); len(ids) > 0 && rapid.IntRange(0, 20).Draw(t, "known") > 0 {
		recent := ids[max(0, len(ids)-8):]
		return rapid.SampledFrom(recent).Draw(t, "id")
	}
	return rapid.Uint64Range(0, 1<<40).Draw(t, "made up id")
}

// caller draws who asks about a transaction, mostly one who may.
func (w *world) caller(t *rapid.T, least uint64) fsm.Caller {
	if l := w.truth.opened[least]; l != nil && rapid.IntRange(0, 9).Draw(t, "own") > 0 {
		return fsm.Caller{Owner: l.owner}
	}
	return fsm.Caller{Owner: rapid.SampledFrom(owners).Draw(t, "caller"), Super: rapid.Bool().Draw(t, "super")}
}

var participants = []txn.Participant{participant("a"), participant("b"), participant("c"), participant("a/s"), participant("b/s")}

func (w *world) add(t *rapid.T) {
	least := w.least(t)
	r := request{kind: "add", least: least, caller: w.caller(t, least)}
	r.participants = rapid.SliceOfN(rapid.SampledFrom(participants), 1, 3).Draw(t, "participants")
	w.ask(r, func(to any) fsm.Command {
		return &fsm.AddParticipants{To: to, Caller: r.caller, Least: least, Participants: slices.Clone(r.participants)}
	})
}

func (w *world) end(t *rapid.T) {
	least := w.least(t)
	action := rapid.SampledFrom([]txn.Action{txn.Commit, txn.Commit, txn.Abort}).Draw(t, "action")
	r := request{kind: "end", least: least, action: action, caller: w.caller(t, least), named: rapid.Bool().Draw(t, "named")}
	settled := rapid.Bool().Draw(t, "settled")
	w.ask(r, func(to any) fsm.Command {
		cmd := &fsm.EndTxn{To: to, Caller: r.caller, Least: least, Action: action, Named: r.named}
		if settled {
			return settle(w.m, cmd)
		}
		return cmd
	})
}

// call lets a participant apply a decision, or fail to.
func (w *world) call(t *rapid.T) {
	if len(w.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.calls)-1).Draw(t, "call")
	c := w.calls[i]
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		w.step(&fsm.Failed{Least: c.ID().Least, Participant: c.Participant(), Reason: "unreachable"})
		return
	}
	w.calls = slices.Delete(w.calls, i, i+1)
	w.apply(c)
}

func (w *world) apply(c fsm.Decision) {
	least, participant := c.ID().Least, c.Participant()
	if w.applied[least] == nil {
		w.applied[least] = map[txn.Participant]bool{}
	}
	w.applied[least][participant] = true
	w.step(&fsm.Applied{Least: least, Participant: participant})
}

func (w *world) resolve(t *rapid.T) {
	least, p := w.least(t), rapid.SampledFrom(participants).Draw(t, "participant")
	w.ask(request{kind: "resolve", least: least, caller: fsm.Caller{Super: true}}, func(to any) fsm.Command {
		return &fsm.Resolve{To: to, Least: least, Participant: p, Who: "root"}
	})
}

func (w *world) describe(t *rapid.T) {
	least := w.least(t)
	w.ask(request{kind: "describe", least: least, caller: fsm.Caller{Super: true}}, func(to any) fsm.Command {
		return &fsm.Describe{To: to, Least: least}
	})
}

// clean brings a prefix of the log, at most one for each batch, as Ready.Clean asks for.
func (w *world) clean(t *rapid.T) {
	if w.cleaned {
		return
	}
	w.cleaned = true
	w.step(&fsm.Cleaned{Prefix: w.store.entries(rapid.IntRange(0, len(w.store.values)).Draw(t, "prefix"))})
}

func (w *world) changeSpace(t *rapid.T) {
	levels := []fsm.SpaceLevel{fsm.SpaceNormal, fsm.SpaceNormal, fsm.SpaceRefuseNew, fsm.SpaceRefuseEnd}
	level := rapid.SampledFrom(levels).Draw(t, "level")
	// Within one batch the level only ever gets stricter for what is checked at its end.
	w.commit(t, durable)
	w.space = level
	w.step(&fsm.Space{Level: level})
}

// bounded compares the machine's own figures with what is there.
func (w *world) bounded(t *rapid.T) {
	cost := int64(0)
	for _, value := range w.store.values {
		cost += int64(len(value)) + cleaning.EntryOverhead
	}
	if w.m.LogCost() != cost {
		t.Fatalf("LogCost %d, the log takes %d", w.m.LogCost(), cost)
	}
	if w.m.Live() != w.truth.live() {
		t.Fatalf("%d live transactions, the log says %d", w.m.Live(), w.truth.live())
	}
}

// finish ends all faults: every transaction must end, and what is not kept any more must leave nothing behind.
func (w *world) finish(t *rapid.T) {
	w.commit(t, durable)
	w.space = fsm.SpaceNormal
	w.step(&fsm.Space{Level: fsm.SpaceNormal})
	w.now = max(w.now, w.latest) + longestTTL
	w.step(&fsm.Tick{})
	w.commit(t, durable)
	for rounds := 0; len(w.calls) > 0 && rounds < 100; rounds++ {
		calls := w.calls
		w.calls = nil
		for _, c := range calls {
			w.apply(c)
		}
		w.commit(t, durable)
	}
	if w.m.Live() != 0 || w.truth.live() != 0 {
		t.Fatalf("%d transactions never end", w.m.Live())
	}
	w.now += w.opts.Preserver.Retention + 1
	w.step(&fsm.Tick{Expire: true})
	w.step(&fsm.Cleaned{Prefix: w.store.entries(len(w.store.values))})
	w.commit(t, durable)
	if left := fmt.Sprint(w.m.Outcomes().Len(), w.m.Outcomes().Names(), w.m.LiveCost()); left != "0 0 0" {
		t.Fatalf("outcomes, names and live bytes left behind: %s", left)
	}
	for _, entry := range w.store.entries(len(w.store.values)) {
		for _, r := range entry.Records {
			if r.Op != txn.OpForget {
				t.Fatalf("record left behind: %v", r)
			}
		}
	}
}
