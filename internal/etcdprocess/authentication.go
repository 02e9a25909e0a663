package etcdprocess

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// rootPassword is that of the cluster's own client once Authenticate has been called.
const rootPassword = "root's"

// Authenticate makes the cluster take no request any more without a token, and adds a user that may read and write the keys
// below prefix.
func (c *Cluster) Authenticate(ctx context.Context, user, password, prefix string) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	end := clientv3.GetPrefixRangeEnd(prefix)
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "root", rootPassword); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.RoleAdd(ctx, user); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, user, prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := client.UserAdd(ctx, user, password); return err },
		func() error { _, err := client.UserGrantRole(ctx, user, user); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("authentication: %w", err)
		}
	}
	c.user, c.secret = "root", rootPassword
	errs := []error{c.forgetClient()}
	for _, m := range c.Members {
		errs = append(errs, m.forgetClient())
	}
	return errors.Join(errs...)
}
