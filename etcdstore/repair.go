package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// repairInterval is the time between two repairs of this process: what fills the members may not be history.
	repairInterval = time.Minute
	// repairSpread is how long a repair waits at most, so that of several processes one comes first.
	repairSpread = 3 * time.Second
	// defragmentTimeout bounds the defragmentation of one member.
	defragmentTimeout = time.Minute
)

// repairClient is what repairs need of an etcd client.
type repairClient interface {
	compactor
	AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error)
	AlarmDisarm(ctx context.Context, member *clientv3.AlarmMember) (*clientv3.AlarmResponse, error)
}

// repairs do what an operator would do about a cluster that stores nothing for lack of space. One takes minutes at worst, and goes on
// beside the looks at the members: one that is defragmented answers nobody.
type repairs struct {
	client     repairClient
	defragment func(ctx context.Context, endpoint string) error
	revision   func() int64 // the newest one
	log        zerolog.Logger

	due   time.Time // used by see; zero: none is
	next  time.Time // used by see: none begins before
	going atomic.Bool
	tasks sync.WaitGroup
}

// see is told what the members of the cluster say. It does not block.
func (r *repairs) see(ctx context.Context, now time.Time, members []answer) {
	if !alarmed(members) {
		r.due = time.Time{}
		return
	}
	if r.due.IsZero() {
		r.due = now.Add(rand.N(repairSpread))
	}
	if now.Before(r.due) || now.Before(r.next) || !r.going.CompareAndSwap(false, true) {
		return
	}
	r.next = now.Add(repairInterval)
	r.tasks.Go(func() {
		defer r.going.Store(false)
		if err := r.repair(ctx, members); err != nil && ctx.Err() == nil {
			r.log.Warn().Err(err).Msg("etcd not repaired")
		}
	})
}

// repair compacts history, gives free pages back, one member after the other, and takes the alarms back.
func (r *repairs) repair(ctx context.Context, members []answer) error {
	r.log.Warn().Msg("etcd stores nothing for lack of space: compacting, defragmenting and disarming it")
	_, err := r.client.Compact(ctx, r.revision(), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	for _, member := range members {
		if err := r.defragment(ctx, member.endpoint); err != nil {
			return fmt.Errorf("defragment %s: %w", member.endpoint, err)
		}
	}
	return r.disarm(ctx)
}

// defragmenter returns what defragments one member. The member answers nobody meanwhile: what else waits for it is given up, but not
// this, which has a client of its own. To dial one member a client reads its endpoints without a lock, and those of the other change.
func (c *cluster) defragmenter(options ClusterOptions) func(ctx context.Context, endpoint string) error {
	config := c.config(options, newConnections())
	return func(ctx context.Context, endpoint string) error {
		ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
		defer cancel()
		config := config
		config.Context, config.Endpoints = ctx, []string{endpoint}
		client, err := clientv3.New(config)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Defragment(ctx, endpoint)
		return err
	}
}

// disarm takes back the alarms for lack of space, and no other: one for corruption is for an operator to judge.
func (r *repairs) disarm(ctx context.Context) error {
	found, err := r.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("read the alarms of etcd: %w", err)
	}
	for _, alarm := range found.Alarms {
		if alarm.GetAlarm() != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := r.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("disarm etcd: %w", err)
		}
	}
	return nil
}
