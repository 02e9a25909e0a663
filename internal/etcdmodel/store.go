package etcdmodel

import (
	"bytes"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// store is keys with their history.
type store struct {
	revision  int64
	compacted int64      // reads below it are refused
	keys      []*history // sorted; a key whose history is compacted away is not there
	log       []event    // everything that happened from compacted on, for watches
}

// event is one change.
type event struct {
	revision int64
	history  *history
	kv       *mvccpb.KeyValue // never changed
	deleted  bool
	previous *mvccpb.KeyValue // nil if there was no such key
}

// history is the versions of one key, oldest first. Of one revision the last counts.
type history struct {
	key      string
	versions []version
}

type version struct {
	main, created, version, lease int64
	value                         []byte
	deleted                       bool
}

func newStore() store { return store{revision: 1} }

// at returns the version of a revision, or nil if the key did not exist.
func (h *history) at(revision int64) *version {
	for i := len(h.versions) - 1; i >= 0; i-- {
		if v := &h.versions[i]; v.main <= revision {
			if v.deleted {
				return nil
			}
			return v
		}
	}
	return nil
}

// keyValue is a copy for an answer, which the caller may change.
func (h *history) keyValue(v *version) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: []byte(h.key), Value: bytes.Clone(v.value),
		CreateRevision: v.created, ModRevision: v.main, Version: v.version, Lease: v.lease,
	}
}

// within returns the histories of a key, or of a range if end is not empty: up to end, which is not in it, and 0 is no end.
func (s *store) within(key, end []byte) []*history {
	from, found := s.find(string(key))
	if len(end) == 0 {
		if !found {
			return nil
		}
		return s.keys[from : from+1]
	}
	to := len(s.keys)
	if !endless(end) {
		to, _ = s.find(string(end))
	}
	if to <= from {
		return nil
	}
	return s.keys[from:to]
}

func endless(end []byte) bool { return len(end) == 1 && end[0] == 0 }

func (s *store) find(key string) (index int, found bool) {
	return slices.BinarySearchFunc(s.keys, key, func(h *history, key string) int { return strings.Compare(h.key, key) })
}

// put and remove change a key at revision, which is the one after the newest until advance is called.
func (s *store) put(revision int64, key string, value []byte, lease int64) {
	i, found := s.find(key)
	if !found {
		s.keys = slices.Insert(s.keys, i, &history{key: key})
	}
	h := s.keys[i]
	v := version{main: revision, created: revision, version: 1, lease: lease, value: bytes.Clone(value)}
	before := h.at(revision)
	if before != nil {
		v.created, v.version = before.created, before.version+1
	}
	s.change(h, before, v)
}

func (s *store) remove(revision int64, h *history) {
	s.change(h, h.at(revision), version{main: revision, deleted: true})
}

func (s *store) change(h *history, before *version, v version) {
	e := event{revision: v.main, history: h, deleted: v.deleted}
	if before != nil {
		e.previous = h.keyValue(before)
	}
	if v.deleted {
		e.kv = &mvccpb.KeyValue{Key: []byte(h.key), ModRevision: v.main}
	} else {
		e.kv = h.keyValue(&v)
	}
	h.versions = append(h.versions, v)
	s.log = append(s.log, e)
}

// compact keeps of each key the version at revision and what is later.
func (s *store) compact(revision int64) error {
	if revision <= s.compacted {
		return rpctypes.ErrGRPCCompacted
	}
	if revision > s.revision {
		return rpctypes.ErrGRPCFutureRev
	}
	s.compacted = revision
	s.keys = slices.DeleteFunc(s.keys, func(h *history) bool { return h.compact(revision) })
	from, _ := slices.BinarySearchFunc(s.log, revision, func(e event, revision int64) int { return int(e.revision - revision) })
	s.log = slices.Clone(s.log[from:])
	return nil
}

// compact reports whether nothing is left.
func (h *history) compact(revision int64) bool {
	first := 0
	for i, v := range h.versions {
		if v.main > revision {
			break
		}
		first = i
	}
	if v := h.versions[first]; v.deleted && v.main <= revision {
		first++
	}
	h.versions = slices.Clone(h.versions[first:])
	return len(h.versions) == 0
}

// readable says whether there can be a read at revision while the newest is newest.
func (s *store) readable(revision, newest int64) error {
	switch {
	case revision > newest:
		return rpctypes.ErrGRPCFutureRev
	case revision < s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}
