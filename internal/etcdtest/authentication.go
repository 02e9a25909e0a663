package etcdtest

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Credentials of a server behind Authenticate. Root may do everything, User what Grant gives.
const (
	Root, RootPassword = "root", "root's"
	User, UserPassword = "coordinator", "the coordinator's"
)

// role is that of User.
const role = "coordinator"

// Authenticate turns authentication on, with a user who may read and write below prefix. It returns a client of root.
func (s *Server) Authenticate(t testing.TB, prefix string) *clientv3.Client {
	t.Helper()
	client := s.Client(t)
	ctx := context.Background()
	steps := []func() error{
		func() error { _, err := client.UserAdd(ctx, Root, RootPassword); return err },
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.UserGrantRole(ctx, Root, "root"); return err },
		func() error { _, err := client.UserAdd(ctx, User, UserPassword); return err },
		func() error { _, err := client.RoleAdd(ctx, role); return err },
		func() error { _, err := client.UserGrantRole(ctx, User, role); return err },
		func() error { return grant(client, prefix) },
		func() error { _, err := client.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("turn authentication on: %v", err)
		}
	}
	root, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.Endpoint}, Username: Root, Password: RootPassword, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatalf("connect to etcd as root: %v", err)
	}
	t.Cleanup(func() { _ = root.Close() }) // its fate does not matter any more
	return root
}

// Grant gives User's right below prefix; Revoke takes it.
func Grant(t testing.TB, root *clientv3.Client, prefix string) {
	t.Helper()
	if err := grant(root, prefix); err != nil {
		t.Fatalf("grant: %v", err)
	}
}

// Revoke takes what Grant gave.
func Revoke(t testing.TB, root *clientv3.Client, prefix string) {
	t.Helper()
	if _, err := root.RoleRevokePermission(context.Background(), role, prefix, clientv3.GetPrefixRangeEnd(prefix)); err != nil {
		t.Fatalf("revoke: %v", err)
	}
}

func grant(client *clientv3.Client, prefix string) error {
	_, err := client.RoleGrantPermission(context.Background(), role, prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
	return err
}
