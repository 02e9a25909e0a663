package process

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build compiles the command into dir, with build tags, and returns the path of the binary.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	binary := filepath.Join(dir, strings.Join(append([]string{"pulsar-tc"}, tags...), "-"))
	command := exec.CommandContext(ctx, "go", "build", "-tags", strings.Join(tags, ","), "-o", binary,
		"github.com/pulsar-tc/pulsar-tc/cmd/pulsar-tc")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, bytes.TrimSpace(output))
	}
	return binary, nil
}

// FreePort asks the system for a port of the loopback address that nobody uses.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
