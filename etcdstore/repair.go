package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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

// repair does what an operator would do about a cluster that stores nothing for lack of space: it compacts history, gives free
// pages back, one member after the other, and takes the alarm back.
func (c *cluster) repair(ctx context.Context, answers []answer) error {
	if !alarmed(answers) || time.Since(c.repaired) < repairInterval {
		return nil
	}
	c.repaired = time.Now()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rand.N(repairSpread)):
	}
	answers = c.endpoints.judge(ctx, c.endpoints.ask(ctx, lookTimeout))
	if !alarmed(answers) {
		return nil
	}
	c.log.Warn().Msg("etcd stores nothing for lack of space: compacting, defragmenting and disarming it")
	_, err := c.client.Compact(ctx, c.room.revision.Load(), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	for _, a := range answers {
		if err := c.defragment(ctx, a.endpoint); err != nil {
			return fmt.Errorf("defragment %s: %w", a.endpoint, err)
		}
	}
	if _, err := c.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("disarm etcd: %w", err)
	}
	return nil
}

func (c *cluster) defragment(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	_, err := c.client.Defragment(ctx, endpoint)
	return err
}
