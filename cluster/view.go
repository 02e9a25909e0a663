package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// view is what is known of the live instances.
type view struct {
	instances []Instance    // sorted by ID
	changed   chan struct{} // closed when another view takes its place
	places    []int         // of coordinators, as indices of instances; nil until somebody asks
}

func newView(instances []Instance) view {
	slices.SortFunc(instances, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
	return view{instances: instances, changed: make(chan struct{})}
}

// Instances are the live ones, by ID, this one among them unless it leaves. The caller owns the slice.
func (c *Cluster) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.view.instances)
}

// Find returns a live instance.
func (c *Cluster) Find(id string) (Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := slices.BinarySearchFunc(c.view.instances, id, func(i Instance, id string) int { return strings.Compare(i.ID, id) })
	if !found {
		return Instance{}, false
	}
	return c.view.instances[at], true
}

// Changed is closed when an instance has come or gone or is reached otherwise than before, or there are more coordinators.
func (c *Cluster) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.changed
}

// AwaitDesertion returns when no other instance lives, or ctx is done.
func (c *Cluster) AwaitDesertion(ctx context.Context) {
	for {
		c.mu.Lock()
		deserted, changed := !slices.ContainsFunc(c.view.instances, c.other), c.view.changed
		c.mu.Unlock()
		if deserted {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// other reports whether i is not this process.
func (c *Cluster) other(i Instance) bool { return i.ID != c.self.ID }

// see takes over who lives. What is known of this process is not for others to say. The caller holds mu, here and in replace.
func (c *Cluster) see(instances []Instance) {
	instances = slices.DeleteFunc(instances, func(i Instance) bool { return !c.other(i) })
	if !c.leaving {
		instances = append(instances, c.self)
	}
	next := newView(instances)
	if slices.EqualFunc(next.instances, c.view.instances, Instance.same) {
		c.view.instances = next.instances
		return
	}
	c.replace(next)
}

// replace makes next the view.
func (c *Cluster) replace(next view) {
	close(c.view.changed)
	c.view = next
}

// forgetSelf takes this process, which is leaving, out of its own view.
func (c *Cluster) forgetSelf() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(slices.Clone(c.view.instances))
}

// read takes over what is stored and returns the revision that it is of.
func (c *Cluster) read(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := c.options.Client.Get(ctx, c.options.Keys.Instances(), clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("read the instances: %w", err)
	}
	own := false
	instances := make([]Instance, 0, len(found.Kvs)+1)
	for _, pair := range found.Kvs {
		read, err := parse(c.options.Keys, pair.Key, pair.Value)
		if err != nil {
			c.options.Log.Warn().Err(err).Bytes("key", pair.Key).Msg("a key that is not an instance, it is left out")
			continue
		}
		own = own || read.ID == c.Self().ID && pair.Lease == int64(c.Session().Lease)
		instances = append(instances, read)
	}
	c.mu.Lock()
	c.compareClocks(instances)
	c.compareAddresses(instances)
	c.see(instances)
	c.mu.Unlock()
	if own == c.Leaving() {
		select {
		case c.wrong <- struct{}{}:
		default:
		}
	}
	return found.Header.Revision, nil
}

// follow keeps the view true until run is done. revision is that of the read before.
func (c *Cluster) follow(run context.Context, revision int64) {
	pause := firstRetry
	for {
		err := c.awaitChange(run, revision+1)
		if err == nil {
			pause = firstRetry
			revision, err = c.read(run)
		}
		for err != nil {
			if run.Err() != nil {
				return
			}
			if pause == firstRetry {
				c.options.Log.Warn().Err(err).Msg("instances not followed, reading them again until they are")
			}
			wait(run, pause)
			pause = min(2*pause, lastRetry)
			revision, err = c.read(run)
		}
	}
}

// awaitChange returns when a record has changed since from, or may have: none was heard of for refreshInterval.
func (c *Cluster) awaitChange(run context.Context, from int64) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(run), refreshInterval)
	defer cancel()
	for response := range c.options.Client.Watch(ctx, c.options.Keys.Instances(), clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if err := response.Err(); err != nil {
			return fmt.Errorf("watch the instances: %w", err)
		}
		if len(response.Events) > 0 {
			return nil
		}
	}
	if run.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return errors.New("watch the instances: ended")
}
