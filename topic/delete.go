package topic

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

const (
	// removalOpsEach are the operations that the removal of one topic takes: its name, its owner, its tombstone. It compares
	// as many.
	removalOpsEach = 3
	// removalOps are those of the removal of a partitioned topic beside those of its partitions: its policies among them.
	removalOps = 3
)

// DeleteTopic deletes a topic without partitions and its policies, or one partition. Without force nobody may be connected to
// it; with it clients are disconnected. From the answer on the topic does not exist, and a topic of the same name that is made later is another one.
// Errors: ErrTopicNotFound, ErrTopicBusy, txn.ErrNotAllowed for a partitioned topic, *NotOwnerError without force.
//
// Source: PersistentTopic.delete; subscriptions without consumers do not keep a topic.
func (ts *Topics) DeleteTopic(ctx context.Context, name topicname.Name, force bool) error {
	partitions, err := ts.partitions(ctx, name)
	if err != nil {
		return err
	}
	if partitions > 0 {
		return errPartitioned(name)
	}
	return ts.remove(ctx, removal{names: []topicname.Name{name}, force: force})
}

// DeletePartitioned deletes a partitioned topic with all its partitions, all at once. Force is as in DeleteTopic.
// Errors: ErrTopicNotFound, ErrTopicBusy, *NotOwnerError without force: the other instance has to unload the partition first.
func (ts *Topics) DeletePartitioned(ctx context.Context, name topicname.Name, force bool) error {
	for {
		stored, err := ts.partitioned(ctx, name)
		if err != nil {
			return err
		}
		r := removal{partitioned: &stored, force: force}
		for p := range stored.number {
			r.names = append(r.names, name.WithPartition(p))
		}
		if err := ts.remove(ctx, r); !errors.Is(err, errChanged) {
			return err
		}
	}
}

// errChanged: a partitioned topic has been written since it was read.
var errChanged = errors.New("the partitioned topic was changed meanwhile")

// removal is what one deletion removes.
type removal struct {
	names       []topicname.Name
	partitioned *storedAttributes // nil: one topic
	force       bool
	// unused, if set, is asked in a loaded topic whether it may go.
	unused func(*Topic) bool
}

// doomed is a topic as a removal finds it.
type doomed struct {
	name  topicname.Name
	id    uint64
	owner int64 // mod revision; 0: it was never loaded
	open  *Topic
}

// remove deletes names in one transaction of the store, which leaves a tombstone for the data of each. It compares that nobody
// has loaded or made one since it was looked at; if somebody has, it looks again.
func (ts *Topics) remove(ctx context.Context, r removal) error {
	if err := ts.options.Creator.Settled(ctx); err != nil {
		return err
	}
	for {
		found, err := ts.findDoomed(ctx, r)
		if err != nil {
			return err
		}
		closed, err := ts.closeForRemoval(ctx, found, r)
		if err != nil {
			ts.reopen(closed)
			return err
		}
		removed, err := ts.removeNames(ctx, found, r)
		if err == nil && !removed {
			ts.reopen(closed)
			if err := ts.stillThere(ctx, r); err != nil {
				return err
			}
			continue
		}
		for _, t := range closed { // if the result is unknown, the next load tells
			t.abandon(errClosing)
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", r.names[0].Base(), err)
		}
		ts.sweepLater(found)
		return nil
	}
}

// stillThere returns errChanged if a partitioned topic is not as it was.
func (ts *Topics) stillThere(ctx context.Context, r removal) error {
	if r.partitioned == nil {
		return nil
	}
	got, err := ts.store.get(ctx, r.partitioned.key)
	if err == nil && (len(got.Kvs) == 0 || got.Kvs[0].ModRevision != r.partitioned.revision) {
		return errChanged
	}
	return err
}

func (ts *Topics) findDoomed(ctx context.Context, r removal) ([]doomed, error) {
	var found []doomed
	for _, name := range r.names {
		d := doomed{name: name, open: ts.loaded(name.String())}
		got, err := ts.store.get(ctx, ts.nameKey(name))
		if err != nil {
			return nil, err
		}
		switch {
		case len(got.Kvs) > 0:
			d.id = uint64(got.Kvs[0].CreateRevision)
		case r.partitioned == nil:
			return nil, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
		default: // a partition that nobody has used
			found = append(found, d)
			continue
		}
		if got, err = ts.store.get(ctx, ts.options.Keys.Topic(d.id).Owner()); err != nil {
			return nil, err
		}
		if len(got.Kvs) > 0 {
			d.owner = got.Kvs[0].ModRevision
			if err := ts.mayRemove(d, got.Kvs[0], r); err != nil {
				return nil, err
			}
		}
		found = append(found, d)
	}
	return found, nil
}

// mayRemove leaves it to the instance that serves a topic to find out whether anybody is connected to it. With force that does not
// matter: it learns of the deletion by its watch, or when it writes.
// Errors: *NotOwnerError.
func (ts *Topics) mayRemove(d doomed, owner *mvccpb.KeyValue, r removal) error {
	instance := ts.options.Instance
	if instance == nil || r.force || owner.Lease == 0 {
		return nil
	}
	if other := string(owner.Value); other != instance.ID() && instance.Lives(other) {
		return &NotOwnerError{d.name, other}
	}
	return nil
}

// closeForRemoval makes loaded topics take no more clients, and returns them. Clients that are connected stay until the topics
// are gone.
// Errors: ErrTopicBusy.
func (ts *Topics) closeForRemoval(ctx context.Context, found []doomed, r removal) (closed []*Topic, err error) {
	for _, d := range found {
		if d.open == nil {
			continue
		}
		item := &closeItem{topic: d.open, removal: r}
		_, err := runIn(ctx, d.open, func(t *Topic, answer func(struct{}, error)) {
			item.answer = onlyError(answer)
			t.queue.push(item)
		})
		switch {
		case errors.Is(err, errClosing): // it was unloaded, and whoever loads it changes its owner
		case err != nil:
			d.open.post(func(bool) { item.cancel() })
			return closed, err
		default:
			closed = append(closed, d.open)
		}
	}
	return closed, nil
}

// closeItem makes a topic take no more clients, behind everything that came before.
type closeItem struct {
	topic   *Topic
	removal removal
	answer  func(error)

	cancelled bool // nobody waits for the answer any more
	closed    bool // it made the topic take no more clients
}

// cancel takes back what the item did, or is about to do.
func (c *closeItem) cancel() {
	c.cancelled = true
	if c.closed {
		c.topic.reopen()
	}
}

func (c *closeItem) prepare(*group) bool { return c.topic.settling.stop() }

func (c *closeItem) undo() {}

func (c *closeItem) done(*group) {
	t := c.topic
	defer t.admitSettlements()
	switch {
	case t.removing:
		c.answer(fmt.Errorf("%w: %s is being deleted", errFencedTopic, t.fullName))
		return
	case !c.removal.force && t.connected():
		c.answer(fmt.Errorf("%w: %s", ErrTopicBusy, t.fullName))
		return
	case c.removal.unused != nil && !c.removal.unused(t):
		c.answer(fmt.Errorf("%w: %s", ErrTopicBusy, t.fullName))
		return
	}
	if !c.cancelled {
		t.removing, c.closed = true, true
	}
	c.answer(nil)
}

func (c *closeItem) fail(err error) { c.answer(err) }

func (ts *Topics) reopen(closed []*Topic) {
	for _, t := range closed {
		t.post(func(bool) { t.reopen() })
	}
}

func (t *Topic) reopen() {
	t.removing = false
	t.admitSettlements()
}

// connected reports whether producers or consumers are attached.
func (t *Topic) connected() bool {
	if len(t.producers) > 0 {
		return true
	}
	for _, s := range t.subscriptions {
		if len(s.consumers) > 0 {
			return true
		}
	}
	return false
}

// removeNames reports false if something is not as it was found; then nothing is removed.
func (ts *Topics) removeNames(ctx context.Context, found []doomed, r removal) (removed bool, err error) {
	var compares []clientv3.Cmp
	var then []clientv3.Op
	if base := r.names[0].Base(); r.partitioned != nil || base == r.names[0] { // the policies of one partition are its topic's
		then = append(then, clientv3.OpDelete(ts.options.Keys.Policies(base.Domain, base.Tenant, base.Namespace, base.Local)))
	}
	if r.partitioned != nil {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(r.partitioned.key), "=", r.partitioned.revision))
		then = append(then, clientv3.OpDelete(r.partitioned.key))
	}
	for _, d := range found {
		key := ts.nameKey(d.name)
		compares = append(compares, clientv3.Compare(clientv3.CreateRevision(key), "=", int64(d.id)))
		if d.id == 0 {
			continue
		}
		owner := ts.options.Keys.Topic(d.id).Owner()
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(owner), "=", d.owner))
		then = append(then, clientv3.OpDelete(key), clientv3.OpDelete(owner),
			clientv3.OpPut(ts.options.Keys.Deleted(d.id), d.name.String()))
	}
	if base := r.names[0].Base(); r.partitioned != nil || base == r.names[0] { // partitions share their schemas
		schemas := ts.options.Keys.TopicSchemas(base.Tenant, base.Namespace, base.Local)
		then = append(then, clientv3.OpDelete(schemas.Prefix(), clientv3.WithPrefix()))
	}
	result, err := ts.store.txn(ctx, compares, then, nil)
	if err != nil {
		return false, err
	}
	return result.Succeeded, nil
}
