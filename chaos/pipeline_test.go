//go:build !race

package chaos

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

var pipelineFlag = flag.Int("pipeline", 500, "messages that go through the pipeline")

// pipelineTime bounds the whole run, beside the time that every message takes at worst.
const pipelineTime = 10 * time.Minute

// Messages pass a pipeline of transactions with the official Go client while everything goes wrong: each arrives once, in order
// per key.
func TestPipelineDeliversEachOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), pipelineTime+time.Duration(*pipelineFlag)*50*time.Millisecond)
	defer cancel()
	c := newCluster(t, *instancesFlag)
	load := c.newLoad()
	load.StartProbes()
	n := newNemesis(c, load)
	p := workload.NewPipeline(t, c.addrs(), *pipelineFlag, requestTime)
	passed := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer close(passed)
		p.Run(ctx)
	})
	n.torment(ctx, func() bool {
		select {
		case <-passed:
			return true
		default:
			return false
		}
	})
	running.Wait()
	load.Stop()
	if ctx.Err() != nil {
		t.Fatalf("not all messages passed: %v", context.Cause(ctx))
	}
	p.Verify(ctx)
}
