package chaos

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

var (
	serverFlag    = flag.String("server", "", "binary to run; built if empty")
	timeFlag      = flag.Duration("time", 10*time.Second, "how long things go wrong")
	seedFlag      = flag.Uint64("seed", 0, "of the faults; 0 takes one by chance")
	instancesFlag = flag.Int("instances", 3, "how many there are")
	faultsFlag    = flag.String("faults", "", "regular expression of the names of the faults; empty: all")
	logsFlag      = flag.String("logs", "", "directory for what the processes say; empty: it is not kept")
)

var binaries process.Binaries

func TestMain(m *testing.M) {
	flag.Parse()
	binaries.Ready = *serverFlag
	os.Exit(binaries.Main(m))
}

// requestTime bounds one request of a client: longer than a failover.
const requestTime = 6 * time.Second

// newLoad prepares clients for the cluster.
func (c *cluster) newLoad() *workload.Load {
	c.t.Helper()
	return workload.New(c.t, workload.Options{
		Addrs: c.addrs(), WebURLs: c.webURLs(), Coordinators: coordinators, Disturbed: true, RequestTime: requestTime,
	})
}

// Several instances on an etcd cluster keep every promise under every fault of processes and links.
func TestNemesis(t *testing.T) {
	c := newCluster(t, *instancesFlag)
	load := c.newLoad()
	load.Start()
	load.StartBesides()
	load.StartPlain()
	load.StartProbes()
	n := newNemesis(c, load)
	load.Pause(2 * time.Second)
	until := time.Now().Add(*timeFlag)
	n.torment(t.Context(), func() bool { return time.Now().After(until) })
	n.report()
	load.Pause(2 * time.Second)
	load.Stop()
	// Official clients may have left consumers behind, which keep messages as long as they have a connection.
	for _, i := range c.instances {
		i.clients.Break()
	}
	load.Finish()
	load.Check()
	requireWork(t, load.History().Counts())
}

// requireWork refuses a run in which too little happened to show anything.
func requireWork(t *testing.T, c history.Counts) {
	t.Helper()
	if c.Committed < 20 || c.Aborted < 10 || c.Messages < 100 || c.Acks < 20 {
		t.Errorf("too little happened: %+v", c)
	}
}
