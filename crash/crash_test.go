package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
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

// newLoad prepares clients for a server that runs.
func newLoad(t *testing.T, s *process.Instance, options workload.Options) *workload.Load {
	t.Helper()
	options.Addrs = []string{fmt.Sprintf("localhost:%d", s.Options.Port)}
	options.WebURLs = []string{s.Server.WebURL}
	return workload.New(t, options)
}

// A server killed at random moments keeps every promise: 1, one outcome; 2, definite answers stay true; 3, success means done;
// 4, nothing rests on lost state; 5, ids never repeat; 6, every transaction ends.
func TestRandomKills(t *testing.T) {
	s := newInstance(t, binaries.Ordinary(t))
	s.Start()
	l := newLoad(t, s, workload.Options{})
	l.Start()
	l.StartBesides()
	for kill := 0; kill < *killsFlag || kill < mostKills && !enoughWork(l.History().Counts()); kill++ {
		l.Pause(time.Duration(200+rand.IntN(3500)) * time.Millisecond)
		s.Kill()
		l.Restarted()
		s.Start()
		t.Logf("kill %d: ready again after %v", kill+1, s.Server.Started.Round(time.Millisecond))
	}
	l.Pause(time.Second)
	l.Stop()
	l.Finish()
	l.Check()
	if c := l.History().Counts(); !enoughWork(c) {
		t.Errorf("too little happened: %+v", c)
	}
}

// mostKills is how often a server is killed, at most, until enough happened on a slow machine.
const mostKills = 20

// enoughWork tells a run that shows something.
func enoughWork(c history.Counts) bool {
	return c.Committed >= 20 && c.Aborted >= 10 && c.UnknownEnds >= 5 && c.Messages >= 100 && c.Acks >= 20
}
