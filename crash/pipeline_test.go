//go:build !race

package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

var pipelineFlag = flag.Int("pipeline", 2000, "messages that go through the pipeline")

const (
	// pipelineTime bounds the whole run.
	pipelineTime = 15 * time.Minute
	// requestTime bounds one operation, long enough for the server to start again and answer.
	requestTime = 20 * time.Second
	// betweenKills is how many messages are to be moved from one kill to the next, if that takes no longer than killPause. Each message
	// is moved by every stage.
	betweenKills = 100
	killPause    = 20 * time.Second
)

// Messages pass a pipeline of transactions with the official Go client while the server is killed with -9 every few seconds: each
// arrives once, in order per key.
func TestPipelineDeliversEachOnce(t *testing.T) {
	s := newInstance(t, binaries.Ordinary(t))
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), pipelineTime)
	defer cancel()
	p := workload.NewPipeline(t, []string{fmt.Sprintf("localhost:%d", s.Options.Port)}, *pipelineFlag, requestTime)
	killing, stopKilling := context.WithCancel(ctx)
	kills := 0
	var killer sync.WaitGroup
	killer.Go(func() { kills = kill(killing, s, p) })
	p.Run(ctx)
	stopKilling()
	killer.Wait()
	if ctx.Err() != nil {
		t.Fatalf("not all messages passed in %v", pipelineTime)
	}
	p.Verify(ctx)
	t.Logf("%d kills", kills)
	if kills == 0 || p.Interrupted() == 0 {
		t.Error("no kill interrupted a transaction: the run shows nothing")
	}
}

// kill kills the server again and again and returns how often: a slow pipeline gets on in between, and a fast one does not get through.
func kill(ctx context.Context, s *process.Instance, p *workload.Pipeline) int {
	for kills := 0; ; kills++ {
		before, began, pause := p.Moved(), time.Now(), time.Duration(1500+rand.IntN(2500))*time.Millisecond
		due := func() bool {
			moved, waited := p.Moved()-before, time.Since(began)
			return waited >= pause && moved >= betweenKills || waited >= killPause || moved >= int64(*pipelineFlag)
		}
		for ctx.Err() == nil && !due() {
			workload.Pause(ctx, 10*time.Millisecond)
		}
		if ctx.Err() != nil {
			return kills
		}
		s.Kill()
		s.Start()
	}
}
