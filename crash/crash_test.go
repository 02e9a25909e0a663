package crash

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

var (
	serverFlag     = flag.String("server", "", "binary to run; built if empty")
	killsFlag      = flag.Int("kills", 3, "how often the server is killed at random moments")
	everywhereFlag = flag.Bool("everywhere", false, "stop at every failpoint, not at a few")
)

var binaries process.Binaries

func TestMain(m *testing.M) {
	flag.Parse()
	binaries.Ready = *serverFlag
	os.Exit(binaries.Main(m))
}

// newInstance makes an instance on which nothing is forgotten that a test may ask for.
func newInstance(t *testing.T, binary string, set ...string) *process.Instance {
	t.Helper()
	forgetting := []string{"transactionMetaPersistCount=1000000", "transactionMetaPersistUnnamedCount=1000000"}
	return process.NewInstance(t, binary, append(forgetting, set...)...)
}

// A server killed at random moments keeps every promise: 1, one outcome; 2, definite answers stay true; 3, success means done;
// 4, nothing rests on lost state; 5, ids never repeat; 6, every transaction ends.
func TestRandomKills(t *testing.T) {
	s := newInstance(t, binaries.Ordinary(t))
	s.Start()
	l := newLoad(t, s)
	l.start()
	l.startBesides()
	for kill := range *killsFlag {
		pause(l.ctx, time.Duration(200+rand.IntN(3500))*time.Millisecond)
		s.Kill()
		l.restarts.Add(1)
		s.Start()
		t.Logf("kill %d: ready again after %v", kill+1, s.Server.Started.Round(time.Millisecond))
	}
	pause(l.ctx, time.Second)
	l.stop()
	l.finish()
	l.check()
	requireWork(t, l.history.Counts())
}

// requireWork refuses a run in which too little happened to show anything.
func requireWork(t *testing.T, c history.Counts) {
	t.Helper()
	if c.Committed < 20 || c.Aborted < 10 || c.UnknownEnds < 5 || c.Messages < 100 || c.Acks < 20 {
		t.Errorf("too little happened: %+v", c)
	}
}

// pause lets the load run for a while.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
