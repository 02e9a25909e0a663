package fsm_test

import (
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Promise 2: what was answered as not known while outcomes were not kept is not known later either, when they are.
func TestKeepingNothingForgets(t *testing.T) {
	keeping := preserver.Options{Count: 10, UnnamedCount: 10, Retention: 1 << 40, MinTime: 1 << 30, Max: 100}
	off, unnamedOff := keeping, keeping
	off.Count, unnamedOff.UnnamedCount = 0, 0
	for _, c := range []struct {
		name         string
		ended, asked preserver.Options
		client       string
	}{
		{"ended before, named", keeping, off, "client"},
		{"ended before, unnamed", keeping, off, ""},
		{"ended before, unnamed ones not kept", keeping, unnamedOff, ""},
		{"ended meanwhile, named", off, off, "client"},
		{"ended meanwhile, unnamed", off, off, ""},
		{"ended meanwhile, unnamed ones not kept", unnamedOff, unnamedOff, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, fsm.Options{TC: 1, Preserver: c.ended})
			s.transaction(c.client, true)
			s.commit()
			least := s.m.Issued()
			if c.asked != c.ended {
				s.reload(t, c.asked)
			}
			if got := s.end(least); !isNotFound(got) {
				t.Fatalf("END while nothing is kept: %v", got)
			}
			for range 2 {
				s.reload(t, keeping)
				if got := s.end(least); !isNotFound(got) {
					t.Fatalf("END when outcomes are kept again: %v, want 24 as before", got)
				}
			}
			s.transaction(c.client, true)
			s.commit()
			if got := s.end(s.m.Issued()); got != nil {
				t.Errorf("END of a later transaction again: %v", got)
			}
		})
	}
}

// reload begins a term with other options.
func (s *server) reload(t *testing.T, opts preserver.Options) {
	t.Helper()
	s.opts.Preserver = opts
	m, ready, err := s.store.load(s.opts, s.now, fsm.SpaceNormal)
	if err != nil {
		t.Fatal(err)
	}
	s.m = m
	if ready.Writes() {
		m.Appended(s.store.append(&ready.Batch, len(ready.Batch.Changes)))
	}
}

// end asks for a commit and returns the answer.
func (s *server) end(least uint64) error {
	s.m.Step(s.now, &fsm.EndTxn{To: "end", Least: least})
	ready := s.m.Take()
	if ready.Writes() {
		s.m.Appended(s.store.append(&ready.Batch, len(ready.Batch.Changes)))
	}
	return effects(ready)[0].Err
}

func isNotFound(err error) bool {
	var notFound *txn.NotFoundError
	return errors.As(err, &notFound)
}
