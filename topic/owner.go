package topic

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Instance is this process among those that share the store.
type Instance interface {
	// ID is what owner keys name.
	ID() string
	// Session returns the lease that owner keys hang on. lost is closed when it is known to be gone; until the next session
	// begins the lost one is returned, under which nothing can be put.
	Session() (lease clientv3.LeaseID, lost <-chan struct{})
	// Lives reports whether another instance is known to live: a hint, which may come late.
	Lives(id string) bool
}

// NotOwnerError says that another instance serves a topic. It wraps txn.ErrNotReady: clients look the topic up again.
type NotOwnerError struct {
	Topic topicname.Name
	Owner string // id of the instance
}

func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("topic %s is served by instance %s, look it up again", e.Topic, e.Owner)
}

func (e *NotOwnerError) Unwrap() error { return txn.ErrNotReady }

// ServerError is what Pulsar answers for a topic that another broker owns.
// Source: BrokerService.checkTopicNsOwnership, ServiceUnitNotReadyException.
func (e *NotOwnerError) ServerError() pulsarproto.ServerError {
	return pulsarproto.ServerError_ServiceNotReady
}

// errOwnerGone: the lease of the owner will end.
var errOwnerGone = fmt.Errorf("%w: it is held, until its lease ends, by an instance that is gone", txn.ErrNotReady)

// ownership is what a load has taken before it reads.
type ownership struct {
	keys  keyspace.Topic
	fence int64
	// lost is closed when the lease of the owner key is known to be gone; nil: it has none.
	lost <-chan struct{}
	// left is what the load before has left to this one; nil: nothing.
	left *dormant
}

// own takes the fence of a topic, which exists while it does: a topic that is deleted meanwhile is looked up again.
// Errors: *NotOwnerError, those of identify.
func (ts *Topics) own(ctx context.Context, name topicname.Name, create bool) (ownership, error) {
	claim := ts.claim
	if ts.options.Instance != nil {
		claim = ts.claimLeased
	}
	for {
		id, err := ts.identify(ctx, name, create)
		if err != nil {
			return ownership{}, err
		}
		taken, err := claim(ctx, name, id)
		if err != nil {
			return ownership{}, fmt.Errorf("own %s: %w", name, err)
		}
		if taken.fence != 0 {
			return taken, nil
		}
	}
}

// claim takes the owner key from whoever had it, because no other process can: it is a load of this one or of one that is gone.
// No fence: the topic is not the one with the id any more.
func (ts *Topics) claim(ctx context.Context, name topicname.Name, id uint64) (ownership, error) {
	keys := ts.options.Keys.Topic(id)
	result, err := ts.store.txn(ctx, []clientv3.Cmp{ts.named(name, id)}, []clientv3.Op{clientv3.OpPut(keys.Owner(), name.String())}, nil)
	if err != nil || !result.Succeeded {
		return ownership{}, err
	}
	return ownership{keys: keys, fence: result.Header.Revision}, nil
}

// named holds while the topic is the one with the id.
func (ts *Topics) named(name topicname.Name, id uint64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(ts.nameKey(name)), "=", int64(id))
}

// claimLeased takes the owner key under the lease of this session, if it does not exist or is this instance's own: of an earlier
// load or session, whose writes the new fence refuses. No fence: something changed meanwhile, and it is to be looked at again.
// Errors: *NotOwnerError; one that is worth another try where the owner is not known to live, because its lease ends soon.
func (ts *Topics) claimLeased(ctx context.Context, name topicname.Name, id uint64) (ownership, error) {
	instance, owner := ts.options.Instance, ts.options.Keys.Topic(id).Owner()
	taken, held, err := ts.take(ctx, name, id, clientv3.Compare(clientv3.CreateRevision(owner), "=", 0))
	if err != nil || held == nil {
		return taken, err
	}
	other := string(held.Value)
	switch {
	case held.Lease == 0, other == instance.ID(): // without a lease it was left by a process that had the store to itself
		taken, _, err = ts.take(ctx, name, id, clientv3.Compare(clientv3.ModRevision(owner), "=", held.ModRevision))
		return taken, err
	case instance.Lives(other):
		return ownership{}, &NotOwnerError{name, other}
	}
	return ownership{}, fmt.Errorf("%w: %s", errOwnerGone, other)
}

// take puts the owner key if the topic is the one with the id and the owner key is as expected; else it returns the owner key, nil
// if there is none.
func (ts *Topics) take(ctx context.Context, name topicname.Name, id uint64, expected clientv3.Cmp) (taken ownership, held *mvccpb.KeyValue, err error) {
	lease, lost := ts.options.Instance.Session()
	keys := ts.options.Keys.Topic(id)
	result, err := ts.store.txn(ctx, []clientv3.Cmp{ts.named(name, id), expected}, []clientv3.Op{
		clientv3.OpPut(keys.Owner(), ts.options.Instance.ID(), clientv3.WithLease(lease)),
		clientv3.OpGet(keys.Dormant()), clientv3.OpDelete(keys.Dormant()),
	}, []clientv3.Op{clientv3.OpGet(keys.Owner())})
	if err != nil {
		return ownership{}, nil, err
	}
	if !result.Succeeded {
		if found := result.Responses[0].GetResponseRange().Kvs; len(found) > 0 {
			held = found[0]
		}
		return ownership{}, held, nil
	}
	taken = ownership{keys: keys, fence: result.Header.Revision, lost: lost}
	if found := result.Responses[1].GetResponseRange().Kvs; len(found) > 0 {
		taken.left, err = decodeDormant(string(found[0].Key), found[0].Value)
	}
	return taken, nil, err
}

// Owner reads, linearizably, which instance owns a topic: empty if none does, or if there is no such topic.
func (ts *Topics) Owner(ctx context.Context, name topicname.Name) (instance string, err error) {
	named, err := ts.store.get(ctx, ts.nameKey(name), clientv3.WithKeysOnly())
	if err != nil || len(named.Kvs) == 0 {
		return "", err
	}
	owner, err := ts.store.get(ctx, ts.options.Keys.Topic(uint64(named.Kvs[0].CreateRevision)).Owner())
	if err != nil || len(owner.Kvs) == 0 || owner.Kvs[0].Lease == 0 {
		return "", err
	}
	return string(owner.Kvs[0].Value), nil
}

// servedElsewhere returns a *NotOwnerError if another instance serves a topic.
func (ts *Topics) servedElsewhere(ctx context.Context, name topicname.Name) error {
	if ts.options.Instance == nil {
		return nil
	}
	owner, err := ts.Owner(ctx, name)
	if err == nil && owner != "" && owner != ts.options.Instance.ID() && ts.options.Instance.Lives(owner) {
		err = &NotOwnerError{name, owner}
	}
	return err
}

// Loaded reports whether this process has a topic loaded, as far as it knows.
func (ts *Topics) Loaded(name topicname.Name) bool { return ts.loaded(name.String()) != nil }

// release gives the owner key up, so that any instance can load the topic; left is what the next one is to know. It is for a topic
// that has closed. If the key is not its own any more, nothing happens; if the store does not answer, the key stays this instance's,
// and its next load takes it again.
func (t *Topic) release(left *dormant) {
	ctx, cancel := context.WithTimeout(t.registry.ctx, t.options.StoreTimeout)
	defer cancel()
	then := []clientv3.Op{clientv3.OpDelete(t.keys.Owner())}
	if left != nil {
		then = append(then, clientv3.OpPut(t.keys.Dormant(), string(left.encode())))
	}
	own := clientv3.Compare(clientv3.ModRevision(t.keys.Owner()), "=", t.fence)
	if _, err := t.store.txn(ctx, []clientv3.Cmp{own}, then, nil); err != nil {
		t.log.Warn().Err(err).Msg("topic is unloaded and stays this instance's")
	}
}
