package fsm_test

import (
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Promise 4: effects are handed out behind what they rest on, and not at all if that fails.
func TestEffectsAreBehindTheBatch(t *testing.T) {
	failed := errors.New("unknown result")
	for name, c := range map[string]struct {
		step  fsm.Command
		rests bool
	}{
		"a record":                 {&fsm.NewTxn{To: 1, TTLMillis: 1000}, true},
		"the term, 24":             {&fsm.EndTxn{To: 1, Least: 99}, true},
		"the term, ADD again":      {&fsm.AddParticipants{To: 1, Least: 1}, true},
		"the term, a list":         {&fsm.List{To: 1}, true},
		"the outcome, END again":   {&fsm.EndTxn{To: 1, Least: 2}, false},
		"nothing, a wrong request": {&fsm.NewTxn{To: 1, TTLMillis: 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := withOpenAndCommitted(t)
			m.Step(0, c.step)
			r := m.Take()
			asked := false
			all, err := r.Effects(func() error { asked = true; return failed })
			if asked != c.rests {
				t.Fatalf("rests on something: %v, want %v", asked, c.rests)
			}
			if c.rests && (!errors.Is(err, failed) || len(all) > 0) {
				t.Errorf("%d effects and %v, want none", len(all), err)
			}
			if waiting := r.Waiting(); len(waiting) != 1 || waiting[0] != 1 {
				t.Errorf("waiting: %v", waiting)
			}
			if !c.rests && len(all) != 1 {
				t.Errorf("%d effects, want one", len(all))
			}
		})
	}
}

// withOpenAndCommitted is a machine with transaction 1, open, and 2, committed and kept.
func withOpenAndCommitted(t *testing.T) *fsm.Machine {
	t.Helper()
	opts := fsm.Options{}
	opts.Preserver = preserver.Options{Count: 10, UnnamedCount: 10, Retention: 1000, Max: 10}
	m := fsm.New(opts)
	if _, _, err := m.Recover(0, 0); err != nil {
		t.Fatal(err)
	}
	m.Step(0, &fsm.NewTxn{TTLMillis: 1000})
	m.Step(0, &fsm.NewTxn{TTLMillis: 1000})
	m.Step(0, &fsm.EndTxn{Least: 2, Action: txn.Commit})
	m.Take()
	return m
}
