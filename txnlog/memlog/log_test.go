package memlog_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/logtest"
	"github.com/pulsar-tc/pulsar-tc/txnlog/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	logtest.Run(t, func(_ testing.TB, limits logtest.Limits) logtest.Store {
		s := &store{Store: memlog.NewStore()}
		if limits == logtest.Tight {
			s.options = memlog.Options{MaxChanges: 10, MaxParticipants: 10}
		}
		return s
	})
}

// store counts terms; a term holds as long as no other began.
type store struct {
	*memlog.Store
	options memlog.Options
	term    atomic.Int64
}

func (s *store) NewTerm(testing.TB) logtest.Log {
	term := s.term.Add(1)
	return memlog.New(s.Store, logtest.TC, func() bool { return s.term.Load() == term }, s.options)
}

func (s *store) EndTerm(testing.TB) { s.term.Add(1) }

func (s *store) Intercept(f func() logtest.Fate) {
	if f == nil {
		s.Store.Intercept(nil)
		return
	}
	s.Store.Intercept(func(uint64, memlog.Write) memlog.Fate { return memlog.Fate(f()) })
}

func (s *store) Value(_ testing.TB, index uint64) []byte { return s.Store.Value(logtest.TC, index) }

func (s *store) SetValue(_ testing.TB, index uint64, value []byte) {
	s.Store.SetValue(logtest.TC, index, value)
}

func (s *store) OpenKeys(_ testing.TB, least uint64) []string {
	var hashes []string
	for _, p := range s.Store.OpenKeys(txn.ID{Most: logtest.TC, Least: least}) {
		hashes = append(hashes, p.Hash())
	}
	slices.Sort(hashes)
	return hashes
}

func (s *store) Put(_ testing.TB, key string) txn.Fence { return s.Store.Put(key) }

func (s *store) Exists(_ testing.TB, key string) bool { return s.Store.Exists(key) }
