package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

// startWait is how long a process may take to serve before the measurement is given up.
const startWait = 2 * time.Minute

// withProcess starts binary on the data directory dir, runs f beside it when it says that it is ready, and kills it as
// kill -9 does. began is when the process started.
func withProcess(ctx context.Context, binary, dir string, f func(p *process.Server, began time.Time) error) error {
	starting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	began := time.Now()
	p, err := process.Start(starting, process.Options{Binary: binary, DataDir: dir})
	if err != nil {
		return fmt.Errorf("start the server: %w: %s", err, strings.Join(p.Lines(), "\n"))
	}
	return errors.Join(f(p, began), p.Kill())
}

// timeToFirstNew is the time from the start of binary on dir to the answer to a NEW_TXN.
func timeToFirstNew(ctx context.Context, binary, dir string) (took time.Duration, err error) {
	err = withProcess(ctx, binary, dir, func(p *process.Server, began time.Time) error {
		return connected(ctx, p.ServiceURL, func(c *wireclient.Conn) error {
			_, err := c.Begin(ctx, 0, ttlMillis, "")
			took = time.Since(began)
			return err
		})
	})
	return took, err
}

// residentBytes is the memory that process pid has in use.
func residentBytes(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for entry := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(entry, "VmRSS:"); ok {
			kibibytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return float64(kibibytes) * 1024, err
		}
	}
	return 0, errors.New("no VmRSS in the status of the process")
}
