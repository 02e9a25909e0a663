package process

import (
	"bytes"
	"context"
	"errors"
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

// FreePorts asks the system for n ports of the loopback address that nobody uses.
func FreePorts(n int) (ports []int, err error) {
	for range n {
		listener, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, errors.Join(err, listenErr)
		}
		// Closed when all have been asked for, so that no two are the same.
		defer func() { err = errors.Join(err, listener.Close()) }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
