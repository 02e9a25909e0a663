package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/workload"
)

const (
	// servedTime is until when everything is served after a repair: the time of a lease, of a failover of etcd, and of clients
	// that wait between tries.
	servedTime = 60 * time.Second
	// repairTime bounds one repair: an instance that starts, a member that catches up.
	repairTime = 2 * time.Minute
	// twoFaults is how many of a hundred times a second fault strikes while the first one lasts.
	twoFaults = 30
)

// nemesis makes things go wrong, one fault after the other, as its random numbers say.
type nemesis struct {
	*cluster
	load   *workload.Load
	random *rand.Rand
	only   *regexp.Regexp // names of faults
	// coordinators and all are how long it took, by what had happened, until every coordinator and until everything served.
	coordinators, all map[string][]time.Duration
}

// newNemesis takes the seed from -seed.
func newNemesis(c *cluster, load *workload.Load) *nemesis {
	c.t.Helper()
	only, err := regexp.Compile(*faultsFlag)
	if err != nil {
		c.t.Fatal(err)
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	c.t.Logf("-seed %d", seed)
	return &nemesis{
		cluster: c, load: load, random: rand.New(rand.NewPCG(seed, 0)), only: only,
		coordinators: map[string][]time.Duration{}, all: map[string][]time.Duration{},
	}
}

// torment goes on until it is over, which it asks between two faults.
func (n *nemesis) torment(ctx context.Context, over func() bool) {
	for number := 1; !over() && ctx.Err() == nil && !n.t.Failed(); number++ {
		first := n.next()
		if first.alone || n.random.IntN(100) >= twoFaults {
			n.strike(ctx, number, first)
		} else {
			n.strikeTwice(ctx, number, first)
		}
		pause(ctx, time.Duration(n.random.IntN(1500))*time.Millisecond)
	}
}

func (n *nemesis) next() fault {
	for {
		if f := makers[n.random.IntN(len(makers))](n.cluster, n.random); n.only.MatchString(f.name) {
			return f
		}
	}
}

// strike begins a fault, ends it, and waits until everything is served.
func (n *nemesis) strike(ctx context.Context, number int, f fault) {
	lasts := f.lasts(n.random)
	n.t.Logf("%8s  %d: %s, %v", n.load.Now().Round(time.Millisecond), number, f.name, lasts.Round(time.Millisecond))
	since := n.load.Now()
	n.run(ctx, f.name, f.begin)
	if f.survived {
		n.awaitServed(ctx, f.name, since)
	}
	pause(ctx, lasts)
	n.repair(ctx, f)
}

// strikeTwice begins a second fault while the first one lasts.
func (n *nemesis) strikeTwice(ctx context.Context, number int, first fault) {
	second := n.next()
	if second.alone || second.name == first.name {
		n.strike(ctx, number, first)
		return
	}
	lasts, after := first.lasts(n.random), second.lasts(n.random)
	n.t.Logf("%8s  %d: %s, %v, and %s, %v", n.load.Now().Round(time.Millisecond), number,
		first.name, lasts.Round(time.Millisecond), second.name, after.Round(time.Millisecond))
	n.run(ctx, first.name, first.begin)
	pause(ctx, lasts/2)
	// What the first one took away the second one cannot strike.
	if err := n.try(ctx, second.begin); err != nil {
		n.t.Logf("          %s not possible now: %v", second.name, err)
	}
	if first.starts { // which the second one might prevent
		first, second = second, first
		lasts, after = after, lasts
	}
	pause(ctx, lasts/2)
	if first.end != nil {
		n.run(ctx, "end of "+first.name, first.end)
	}
	pause(ctx, after/2)
	n.repair(ctx, second)
}

// repair ends a fault and waits until everything is served.
func (n *nemesis) repair(ctx context.Context, f fault) {
	if f.end != nil {
		n.run(ctx, "end of "+f.name, f.end)
	}
	n.awaitServed(ctx, "end of "+f.name, n.load.Now())
}

// awaitServed waits until everything has served somebody who asked after a time, and notes how long that took.
func (n *nemesis) awaitServed(ctx context.Context, what string, since time.Duration) {
	limit, cancel := context.WithTimeout(ctx, servedTime)
	defer cancel()
	err := n.load.AwaitCoordinators(limit, since)
	n.coordinators[what] = append(n.coordinators[what], n.load.Now()-since)
	if err == nil {
		err = n.load.AwaitServed(limit, since)
		n.all[what] = append(n.all[what], n.load.Now()-since)
	}
	if err != nil {
		n.quit()
		n.t.Fatalf("%s: %v after it: %v", what, servedTime, err)
	}
}

// quit makes every instance say what it is doing, and end.
func (n *nemesis) quit() {
	for _, i := range n.instances {
		if err := errors.Join(i.Server.Resume(), i.Server.Signal(syscall.SIGQUIT)); err != nil {
			n.t.Errorf("%s: %v", i.name, err)
			continue
		}
		<-i.Server.Done()
	}
}

func (n *nemesis) try(ctx context.Context, step func(context.Context) error) error {
	limit, cancel := context.WithTimeout(ctx, repairTime)
	defer cancel()
	return step(limit)
}

func (n *nemesis) run(ctx context.Context, what string, step func(context.Context) error) {
	if err := n.try(ctx, step); err != nil {
		n.t.Errorf("%s: %v", what, err)
	}
}

// report tells how long it took until everything served again. Topics are asked by clients that may wait for 10 s in vain
// before they look for another server.
func (n *nemesis) report() {
	n.t.Helper()
	var lines []string
	for what, all := range n.coordinators {
		lines = append(lines, fmt.Sprintf("  %-40s %3d times %10s %10s", what, len(all), summary(all), summary(n.all[what])))
	}
	slices.Sort(lines)
	n.t.Logf("seconds until served again, median and worst: coordinators; topics, too\n%s", strings.Join(lines, "\n"))
}

func summary(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f %.1f", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}
