package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

const (
	members = 3
	// coordinators is how many the cluster has: two for each of three instances.
	coordinators = 6
	// startTime bounds the start of one instance, which may have to wait for etcd.
	startTime = time.Minute
)

// cluster is everything that runs.
type cluster struct {
	t         *testing.T
	etcd      *etcdprocess.Cluster
	peers     []*faultnet.Link // by which the members reach each other, one to each
	instances []*instance
	logs      string // directory of what the processes say
}

// instance is one pulsar-tc and its links.
type instance struct {
	*process.Instance
	name    string
	clients *faultnet.Link   // binary protocol: clients and other instances
	web     *faultnet.Link   // HTTP
	etcd    []*faultnet.Link // to each member of etcd
}

// newCluster starts etcd and count instances.
func newCluster(t *testing.T, count int) *cluster {
	t.Helper()
	c := &cluster{t: t, logs: *logsFlag}
	if c.logs == "" {
		c.logs = t.TempDir()
	}
	c.etcd = etcdprocess.New(t, etcdprocess.Options{
		Members: members, PeerLink: c.peerLink, Copy: c.log,
		// As operators run it.
		Flags: []string{"--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1m"},
	})
	for i := range count {
		c.instances = append(c.instances, c.newInstance(i))
	}
	for _, i := range c.instances {
		if err := i.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) peerLink(listening string) (string, error) {
	link := faultnet.New(c.t, listening)
	c.peers = append(c.peers, link)
	return link.Addr(), nil
}

// newInstance prepares an instance and its links. It is advertised at an address of its own of the loopback network, where the
// links listen on the ports of the instance.
func (c *cluster) newInstance(number int) *instance {
	c.t.Helper()
	host := fmt.Sprintf("127.0.1.%d", number+1)
	i := &instance{Instance: process.NewInstance(c.t, binaries.Ordinary(c.t)), name: fmt.Sprintf("instance-%d", number)}
	link := func(address, target string) *faultnet.Link {
		l, err := faultnet.Listen(address, target)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(l.Close)
		return l
	}
	onPort := func(port int) *faultnet.Link {
		return link(fmt.Sprintf("%s:%d", host, port), fmt.Sprintf("127.0.0.1:%d", port))
	}
	i.clients, i.web = onPort(i.Options.Port), onPort(i.Options.WebPort)
	var endpoints []string
	for _, m := range c.etcd.Members {
		l := link("127.0.0.1:0", m.Address())
		i.etcd = append(i.etcd, l)
		endpoints = append(endpoints, "http://"+l.Addr())
	}
	i.Options.Set = []string{
		"clusterName=chaos", "advertisedAddress=" + host, "metadataStoreUrl=etcd:" + strings.Join(endpoints, ","),
		fmt.Sprintf("initialNumTransactionCoordinators=%d", coordinators),
		"transactionMetaPersistCount=1000000", "transactionMetaPersistUnnamedCount=1000000",
	}
	i.Options.Copy = func(line string) { c.log(i.name, line) }
	return i
}

// addrs are where clients reach the instances.
func (c *cluster) addrs() []string {
	var all []string
	for _, i := range c.instances {
		all = append(all, i.clients.Addr())
	}
	return all
}

func (c *cluster) webURLs() []string {
	var all []string
	for _, i := range c.instances {
		all = append(all, "http://"+i.web.Addr())
	}
	return all
}

// logging is held over one line of a log.
var logging sync.Mutex

// log keeps what a process said.
func (c *cluster) log(name, line string) {
	logging.Lock()
	defer logging.Unlock()
	file, err := os.OpenFile(filepath.Join(c.logs, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return // the directory is gone with its test
	}
	_, err = fmt.Fprintln(file, line)
	if err := errors.Join(err, file.Close()); err != nil {
		c.t.Logf("log of %s: %v", name, err)
	}
}

// start starts the instance if it does not run, again and again if it ends by itself because etcd does not serve.
func (i *instance) start(ctx context.Context) error {
	if i.runs() {
		return nil // another fault has ended before
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := i.TryStart()
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, time.Second)
	}
}

func (i *instance) runs() bool {
	if i.Server == nil {
		return false
	}
	select {
	case <-i.Server.Done():
		return false
	default:
		return true
	}
}

// links are all links of the instance.
func (i *instance) links() []*faultnet.Link {
	return append([]*faultnet.Link{i.clients, i.web}, i.etcd...)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
