package fsm_test

import (
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// BenchmarkTransaction steps whole transactions through a machine whose store is instant, 128 to a batch; one operation is one
// transaction.
func BenchmarkTransaction(b *testing.B) {
	for _, topics := range []int{0, 1, 3} {
		b.Run(fmt.Sprint(topics, " participants"), func(b *testing.B) {
			m := fsm.New(fsm.Options{TC: 1, Preserver: preserver.Options{
				Count: 1000, UnnamedCount: 10_000, Retention: 259_200_000, Max: 1_000_000,
			}})
			if _, _, err := m.Recover(1_000_000, 0); err != nil {
				b.Fatal(err)
			}
			index := uint64(1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now := int64(1_000_000 + i)
				m.Step(now, &fsm.NewTxn{TTLMillis: 60_000})
				least := m.Issued()
				if topics > 0 {
					m.Step(now, &fsm.AddParticipants{Least: least, Participants: participants[:topics]})
				}
				m.Step(now, &fsm.EndTxn{Least: least, Action: txn.Commit})
				for _, p := range participants[:topics] {
					m.Step(now, &fsm.Applied{Least: least, Participant: p})
				}
				if i%128 == 127 {
					m.Take()
					m.Appended(txn.Appended{First: index, Last: index})
					index++
				}
			}
		})
	}
}

// BenchmarkRepeatedEnd asks for outcomes that are kept.
func BenchmarkRepeatedEnd(b *testing.B) {
	const kept = 1 << 16
	s := newServer(b, fsm.Options{TC: 1, Preserver: preserver.Options{Count: kept, UnnamedCount: kept, Retention: 1 << 40, Max: kept}})
	for range kept {
		s.transaction("", true)
	}
	last := s.m.Issued()
	s.commit()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.m.Step(s.now, &fsm.EndTxn{Least: last - uint64(i%kept), Action: txn.Commit})
		if i%128 == 127 {
			s.m.Take()
		}
	}
}

// BenchmarkRecover loads a log of 100,000 open transactions and as many outcomes; one operation is one load.
func BenchmarkRecover(b *testing.B) {
	s := newServer(b, fsm.Options{TC: 1, Preserver: preserver.Options{Count: 1, UnnamedCount: 1 << 20, Retention: 1 << 40, Max: 1 << 20}})
	for i := range 200_000 {
		s.transaction("", i%2 == 0, participants[0])
		if i%100 == 0 {
			s.commit()
		}
	}
	s.commit()
	entries := s.store.entries(len(s.store.values))
	b.ReportAllocs()
	for b.Loop() {
		m := fsm.New(s.opts)
		for _, entry := range entries {
			if err := m.Replay(entry); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := m.Recover(s.now, s.store.next); err != nil {
			b.Fatal(err)
		}
		if m.Live() != 100_000 {
			b.Fatalf("%d live", m.Live())
		}
	}
}
