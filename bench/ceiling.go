package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// bare is a store like a server's, with nothing on top.
type bare struct {
	client *clientv3.Client
	wrote  func(bytes int) // tells an embedded store's care of its history
	// revisions are of keys that were there before the recording: what a compare with their revision has to say here.
	revisions map[string]int64
	put       int // number of the next key of puts
	chained   int // how often chains has run
}

// onBare runs f with a bare embedded store.
func onBare(ctx context.Context, f func(*bare) error) error {
	return inDirectory(func(dir string) error {
		store, err := etcdstore.Open(ctx, etcdstore.Options{Dir: dir, Space: keyspace.New("bare", "bare")}, zerolog.Nop())
		if err != nil {
			return err
		}
		return errors.Join(f(newBare(store.Client(), store.Wrote)), store.Close())
	})
}

func newBare(client *clientv3.Client, wrote func(int)) *bare {
	return &bare{client: client, wrote: wrote, revisions: map[string]int64{}}
}

// fit makes the compares of the recorded transactions hold here: a key whose revision they compare with is created now, and
// the revision in the compare is replaced.
func (b *bare) fit(ctx context.Context, recorded []transaction) error {
	created := map[string]bool{}
	for i := range recorded {
		t := &recorded[i]
		for j := range t.compares {
			compare := t.compares[j].GetCompare()
			if !asksForKey(compare) || created[string(compare.GetKey())] {
				continue
			}
			revision, err := b.create(ctx, string(compare.GetKey()))
			if err != nil {
				return err
			}
			t.compares[j] = withRevision(t.compares[j], revision)
		}
		if !t.succeeded {
			continue
		}
		for _, op := range t.then {
			if op.IsPut() {
				created[string(op.KeyBytes())] = true
			}
		}
	}
	return nil
}

// asksForKey tells the compares that hold only if their key exists.
func asksForKey(compare *pb.Compare) bool {
	switch compare.GetTarget() {
	case pb.Compare_CREATE:
		return compare.GetResult() == pb.Compare_GREATER || compare.GetCreateRevision() != 0
	case pb.Compare_MOD:
		return compare.GetResult() == pb.Compare_GREATER || compare.GetModRevision() != 0
	}
	return false
}

func withRevision(cmp clientv3.Cmp, revision int64) clientv3.Cmp {
	compare := cmp.GetCompare()
	if compare.GetResult() != pb.Compare_EQUAL {
		return cmp
	}
	key := string(compare.GetKey())
	if compare.GetTarget() == pb.Compare_MOD {
		return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
	}
	return clientv3.Compare(clientv3.CreateRevision(key), "=", revision)
}

// create puts key, once, and returns its revision.
func (b *bare) create(ctx context.Context, key string) (int64, error) {
	if revision, ok := b.revisions[key]; ok {
		return revision, nil
	}
	response, err := b.client.Put(ctx, key, "")
	if err != nil {
		return 0, fmt.Errorf("create %q: %w", key, err)
	}
	b.revisions[key] = response.Header.Revision
	return response.Header.Revision, nil
}

// replay commits the recorded transactions one after another and returns how long each took. Call fit before.
func (b *bare) replay(ctx context.Context, recorded []transaction) ([]time.Duration, error) {
	took := make([]time.Duration, len(recorded))
	for i := range recorded {
		t := &recorded[i]
		began := time.Now()
		response, err := b.client.Txn(ctx).If(t.compares...).Then(t.then...).Else(t.otherwise...).Commit()
		took[i] = time.Since(began)
		if err != nil {
			return nil, fmt.Errorf("replay transaction %d: %w", i, err)
		}
		if response.Succeeded != t.succeeded {
			return nil, fmt.Errorf("replay transaction %d: its compares were %t, now %t", i, t.succeeded, response.Succeeded)
		}
		b.wrote(t.bytes())
	}
	return took, nil
}

// puts writes as many bytes as each recorded transaction that writes, with one put of a new key each.
func (b *bare) puts(ctx context.Context, recorded []transaction) ([]time.Duration, error) {
	var took []time.Duration
	for i := range recorded {
		t := &recorded[i]
		if !t.writes() {
			continue
		}
		key := fmt.Sprintf("put/%016x", b.put)
		b.put++
		value := string(make([]byte, max(t.bytes()-len(key), 0)))
		began := time.Now()
		if _, err := b.client.Put(ctx, key, value); err != nil {
			return nil, fmt.Errorf("put %s: %w", key, err)
		}
		took = append(took, time.Since(began))
		b.wrote(t.bytes())
	}
	return took, nil
}

func sum(all []time.Duration) time.Duration {
	var total time.Duration
	for _, d := range all {
		total += d
	}
	return total
}
