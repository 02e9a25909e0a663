package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// clearNoSpace frees space and takes the alarm back if the store was locked for lack of space.
func (e *embedded) clearNoSpace(ctx context.Context) error {
	alarms, err := e.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("read alarms of the store: %w", err)
	}
	for _, alarm := range alarms.Alarms {
		if alarm.GetAlarm() != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		e.log.Warn().Msg("the store was locked for lack of space: compacting and defragmenting")
		if err := e.shrink(ctx); err != nil {
			return err
		}
		member := &clientv3.AlarmMember{MemberID: alarm.GetMemberID(), Alarm: alarm.GetAlarm()}
		if _, err := e.client.AlarmDisarm(ctx, member); err != nil {
			return fmt.Errorf("unlock the store: %w", err)
		}
	}
	return nil
}

// shrink forgets all history and gives free pages back to the file system. Nobody is served meanwhile.
func (e *embedded) shrink(ctx context.Context) error {
	_, err := e.client.Compact(ctx, e.server.Server.KV().Rev(), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact the store: %w", err)
	}
	if err := e.server.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragment the store: %w", err)
	}
	return nil
}
