package etcdprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"go.etcd.io/etcd/api/v3/version"
)

// Build returns the path of the etcd binary, which it compiles if this machine has none of this version. Several processes may
// call it at once.
func Build(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	dir := filepath.Join(cache, "pulsar-tc")
	binary := filepath.Join(dir, fmt.Sprintf("etcd-%s-%s", version.Version, runtime.Version()))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	scratch, err := os.MkdirTemp(dir, "build")
	if err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	built := filepath.Join(scratch, "etcd")
	command := exec.CommandContext(ctx, "go", "build", "-o", built, "go.etcd.io/etcd/server/v3")
	if output, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build etcd: %w\n%s", err, bytes.TrimSpace(output)), os.RemoveAll(scratch))
	}
	// The name becomes visible with a whole file behind it.
	if err := errors.Join(os.Rename(built, binary), os.RemoveAll(scratch)); err != nil {
		return "", fmt.Errorf("build etcd: %w", err)
	}
	return binary, nil
}
