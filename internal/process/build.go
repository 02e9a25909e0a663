package process

import (
	"bytes"
	"context"
	"fmt"
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
