package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// openLocal starts a server of this process and connects to its coordinator, for as long as the benchmark runs.
func openLocal(b *testing.B) (*local, *wireclient.Conn) {
	b.Helper()
	l, err := startLocal(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.close(); err != nil {
			b.Error(err)
		}
	})
	c, err := wireclient.DialTC(b.Context(), l.ServiceURL(), 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	b.ReportAllocs() // of server, store and client together
	return l, c
}

// slots runs an exchange in each iteration of b.Loop, as many in flight as a load has.
func slots(b *testing.B, exchange func(done func(error))) {
	b.Helper()
	free := make(chan error, inFlight)
	for range inFlight {
		free <- nil
	}
	for b.Loop() {
		if err := <-free; err != nil {
			b.Fatal(err)
		}
		exchange(func(err error) { free <- err })
	}
	for range inFlight {
		if err := <-free; err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewEndCommit256InFlight(b *testing.B) {
	_, c := openLocal(b)
	exchange := newEnd(c, nil)
	slots(b, func(done func(error)) { exchange(0, done) })
}

func BenchmarkNewEndCommitAlone(b *testing.B) {
	_, c := openLocal(b)
	for b.Loop() {
		id, err := c.Begin(b.Context(), 0, ttlMillis, "")
		if err == nil {
			err = c.End(b.Context(), id, txn.Commit, "")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEndRepeated256InFlight(b *testing.B) {
	_, c := openLocal(b)
	ids, err := commit(c, 1000)
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	slots(b, func(done func(error)) {
		end(c, ids[i%len(ids)], "", done)
		i++
	})
}

func BenchmarkOpen256InFlight(b *testing.B) {
	_, c := openLocal(b)
	slots(b, func(done func(error)) {
		begin(c, "", func(_ txn.ID, err error) { done(err) })
	})
}

// A recording replays on another store, compares included, and does not if they are not made to hold there.
func TestReplayOfARecording(t *testing.T) {
	ctx := t.Context()
	source := etcdtest.Open(t, nil).Client()
	leader, err := source.Put(ctx, "leader", "")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	kv := r.wrap(source.KV)
	r.start()
	for _, key := range []string{"a", "b", "a"} {
		_, err := kv.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision("leader"), "=", leader.Header.Revision),
				clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, "value")).
			Else(clientv3.OpGet("leader")).
			Commit()
		if err != nil {
			t.Fatal(err)
		}
	}
	recorded := r.stop()
	if len(recorded) != 3 || !recorded[0].succeeded || recorded[2].succeeded {
		t.Fatalf("recorded %d transactions, want two that succeed and one that does not", len(recorded))
	}
	if size := recorded[0].bytes(); size != len("a")+len("value") {
		t.Errorf("%d bytes, want those of key and value", size)
	}
	if err := onBare(ctx, func(b *bare) error { _, err := b.replay(ctx, recorded); return err }); err == nil {
		t.Error("replayed where the leader key does not exist")
	}
	var turns turns
	err = onBare(ctx, func(b *bare) error { return turns.bare(ctx, b, b, recorded) })
	if err != nil || turns.transactions != 3 || turns.replay == 0 || turns.puts == 0 {
		t.Errorf("%+v, %v", turns, err)
	}
}

func TestLoadCountsItsExchanges(t *testing.T) {
	finish := make(chan func(error), 4)
	l := load{inFlight: 4, limit: 10, exchange: func(_ int, done func(error)) { finish <- done }}
	r := l.start()
	for range 10 {
		(<-finish)(nil)
	}
	if m, err := r.wait(); err != nil || m.count != 10 {
		t.Errorf("%d exchanges, %v, want 10", m.count, err)
	}
	r = l.start()
	for range 4 {
		(<-finish)(context.Canceled)
	}
	if m, err := r.wait(); err == nil || m.count != 0 {
		t.Errorf("%d exchanges, %v, want an error", m.count, err)
	}
}

func TestVerdicts(t *testing.T) {
	double := figure("x", 2, "s").compared(ceiling{"y", 1})
	for want, lines := range map[string][]line{
		"holds":  {double.atLeast(2), double.atMost(2), double.ratioAtLeast(2), double.ratioAtMost(2)},
		"missed": {double.atLeast(2.1), double.atMost(1.9), double.ratioAtLeast(2.1), double.ratioAtMost(1.9)},
	} {
		for _, l := range lines {
			if l.Verdict != want {
				t.Errorf("2 of 1, target %s: %s, want %s", l.Target, l.Verdict, want)
			}
		}
	}
	var table bytes.Buffer
	if err := printTable(&table, []line{double.atLeast(2), leftOut("z", "no reason")}); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); !strings.Contains(got, "holds") || !strings.Contains(got, "left out: no reason") {
		t.Errorf("table:\n%s", got)
	}
}

func TestFlat(t *testing.T) {
	saw := []float64{1, 3, 2, 1, 3, 2}
	if l := flat("saw", saw, 1, "", 0); l.Verdict != "holds" {
		t.Errorf("a saw: %s", l.Verdict)
	}
	if l := flat("slope", []float64{1, 2, 3, 4}, 1, "", 1); l.Verdict != "missed" {
		t.Errorf("a slope: %s", l.Verdict)
	}
}
