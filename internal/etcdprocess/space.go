package etcdprocess

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// ballast is the prefix of the keys that fill a cluster.
	ballast = "ballast/"
	// ballastSize is that of one value: what etcd takes in one request by default is 1.5 MiB.
	ballastSize = 1 << 20
	// mostBallast bounds what is written in the hope of an alarm.
	mostBallast = 4096
)

// Fill writes until the quota of a member is exceeded and NOSPACE refuses every write. A cluster with etcd's default quota
// takes long.
func (c *Cluster) Fill(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	value := string(make([]byte, ballastSize))
	for i := range mostBallast {
		_, err := client.Put(ctx, fmt.Sprintf("%s%d", ballast, i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return fmt.Errorf("%d MiB written and no alarm", mostBallast)
}

// Drain takes back what Fill wrote, gives the space back to the members' files, and disarms the alarm: what an operator does
// about a full etcd.
func (c *Cluster) Drain(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	// Deletions are refused by nothing, not even by the alarm.
	if _, err := client.Delete(ctx, ballast, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	if _, err := c.Compact(ctx); err != nil {
		return err
	}
	for _, m := range c.Members {
		if err := m.Defragment(ctx); err != nil {
			return err
		}
	}
	return c.Disarm(ctx)
}

// Alarm raises NOSPACE, as a member that exceeds its quota does, though there is space.
func (c *Cluster) Alarm(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	id, err := c.Members[0].id(ctx)
	if err != nil {
		return err
	}
	_, err = etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		return fmt.Errorf("raise an alarm: %w", err)
	}
	return nil
}

// Disarm takes back every alarm.
func (c *Cluster) Disarm(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("disarm: %w", err)
	}
	return nil
}
