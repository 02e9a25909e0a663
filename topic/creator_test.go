package topic

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A creation of which it was not known whether it was stored, and which the store applies behind the deletion of the topic, makes no
// topic: not from a load, which is tried again, and not from a request, whose error was answered.
func TestLateCreation(t *testing.T) {
	for what, newWorld := range map[string]func(t *testing.T) *world{
		"alone":             func(t *testing.T) *world { return newWorld(t) },
		"several instances": func(t *testing.T) *world { return newInstances(t).a },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.kv.detached = true
			w.produce("earlier") // the first creation writes the key of the creator
			late := w.holdBack()
			w.produce("t")
			w.vanishes("t", late)

			late = w.holdBack()
			if err := w.topics.CreateTopic(t.Context(), parse(t, "t"), nil); !errors.Is(err, errHeldBack) {
				t.Fatalf("created: %v", err)
			}
			w.produce("t")
			w.vanishes("t", late)
		})
	}
}

var errHeldBack = errors.New("it is not known whether it was stored")

// holdBack keeps the next write from the store until the returned function is called.
func (w *world) holdBack() (late func() (*clientv3.TxnResponse, error)) {
	held := make(chan func() (*clientv3.TxnResponse, error), 1)
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		w.kv.set(nil)
		held <- commit
		return nil, errHeldBack
	})
	return func() (*clientv3.TxnResponse, error) { return (<-held)() }
}

// vanishes deletes a topic and lets a write come to the store behind that.
func (w *world) vanishes(topic string, late func() (*clientv3.TxnResponse, error)) {
	w.t.Helper()
	name := parse(w.t, topic)
	if err := w.topics.DeleteTopic(context.Background(), name, true); err != nil {
		w.t.Fatal(err)
	}
	if applied, err := late(); err != nil || applied.Succeeded {
		w.t.Errorf("the late creation: %v, %v", applied, err)
	}
	if _, err := w.topics.Created(context.Background(), name); !errors.Is(err, ErrTopicNotFound) {
		w.t.Errorf("the topic is there again: %v", err)
	}
}

// Nor does one that could not be stopped at once, where somebody else has made the topic meanwhile: it is stopped before the topic serves.
func TestLateCreationOfATopicOfOthers(t *testing.T) {
	in := newInstances(t)
	a := in.a
	a.kv.detached = true
	a.produce("earlier")
	late := a.holdBack()
	held := a.kv.around
	a.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		answer, err := held(commit)
		a.kv.set(func(func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
			a.kv.set(nil)
			return nil, errors.Join(errHeldBack, in.b.topics.CreateTopic(context.Background(), parse(t, "t"), nil))
		})
		return answer, err
	})
	a.produce("t")
	a.vanishes("t", late)
}

// A process that has the store to itself makes topics whatever has become of the key.
func TestCreatorWithoutItsKey(t *testing.T) {
	w := newWorld(t)
	w.kv.detached = true
	late := w.holdBack()
	w.produce("t")
	w.vanishes("t", late)
	if _, err := storeClient.Delete(t.Context(), w.keys.Creator("")); err != nil {
		t.Fatal(err)
	}
	w.produce("t")
}

// Without a lease nothing is created, and clients are to try again.
func TestCreationWithoutALease(t *testing.T) {
	in := newInstances(t)
	in.of[in.a].revoke()
	if err := in.a.topics.CreateTopic(t.Context(), parse(t, "t"), nil); !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("created: %v", err)
	}
}

// A creator whose key has gone with its lease writes it again under the next one.
func TestCreatorOfTheNextSession(t *testing.T) {
	in := newInstances(t)
	in.a.produce("earlier")
	member := in.of[in.a]
	member.revoke()
	member.notice()
	member.begin()
	in.a.produce("t")
	key, err := storeClient.Get(t.Context(), in.a.keys.Creator("a"))
	if lease, _ := member.Session(); err != nil || len(key.Kvs) != 1 || clientv3.LeaseID(key.Kvs[0].Lease) != lease {
		t.Errorf("the key of the creator: %v, %v", key, err)
	}
}
