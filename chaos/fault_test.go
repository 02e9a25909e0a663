package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
)

// fault is something that goes wrong with some part of the cluster, and its repair.
type fault struct {
	name string // without what it struck
	// survived says that every coordinator has to be served while the fault lasts: somebody else takes over.
	survived bool
	// alone says that no other fault strikes while this one lasts.
	alone bool
	// starts says that the end waits for a process that starts.
	starts      bool
	least, most time.Duration // that it lasts
	begin       func(context.Context) error
	end         func(context.Context) error // nil: it repairs itself
}

// makers make faults, each of what its random numbers choose.
var makers = []func(*cluster, *rand.Rand) fault{
	killInstance, killInstance, pauseInstance, loseInstance, leaveAndJoin, leaveAndJoin, killEveryInstance,
	cutFromEtcd, loseEtcd, holdEtcd, holdEtcd, slowEtcd, breakLinks, halfOpen,
	cutClients, holdClients, slowClients,
	killMember, pauseMember, moveLeader, compact, defragment, noSpace, slowPeers, cutPeer, killEveryMember,
}

func (c *cluster) anyInstance(random *rand.Rand) *instance {
	return c.instances[random.IntN(len(c.instances))]
}

func (c *cluster) anyMember(random *rand.Rand) *etcdprocess.Member {
	return c.etcd.Members[random.IntN(len(c.etcd.Members))]
}

func killInstance(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	return fault{
		name: "instance killed", survived: len(c.instances) > 1, starts: true, least: 0, most: 4 * time.Second,
		begin: func(context.Context) error { return i.Server.Kill() },
		end:   i.start,
	}
}

// pauseInstance stops a process for less than its lease, or a little more.
func pauseInstance(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	return fault{
		name: "instance paused", least: 500 * time.Millisecond, most: 8 * time.Second,
		begin: func(context.Context) error { return i.Server.Pause() },
		end:   func(context.Context) error { return i.Server.Resume() },
	}
}

// loseInstance stops a process until others have taken over. It finds itself fenced when it goes on.
func loseInstance(c *cluster, random *rand.Rand) fault {
	f := pauseInstance(c, random)
	f.name, f.survived, f.least = "instance paused for long", len(c.instances) > 1, 0
	return f
}

func leaveAndJoin(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	return fault{
		name: "instance left", survived: len(c.instances) > 1, starts: true, least: 0, most: 4 * time.Second,
		begin: i.Server.Stop,
		end:   i.start,
	}
}

func killEveryInstance(c *cluster, _ *rand.Rand) fault {
	return fault{
		name: "all instances killed", alone: true, least: 0, most: time.Second,
		begin: func(context.Context) error {
			var errs []error
			for _, i := range c.instances {
				errs = append(errs, i.Server.Kill())
			}
			return errors.Join(errs...)
		},
		end: func(ctx context.Context) error {
			for _, i := range c.instances {
				if err := i.start(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// links makes a fault of a condition of some links.
func links(name string, least, most time.Duration, all []*faultnet.Link, begin func(*faultnet.Link)) fault {
	return fault{
		name: name, least: least, most: most,
		begin: func(context.Context) error {
			for _, l := range all {
				begin(l)
			}
			return nil
		},
		end: func(context.Context) error {
			for _, l := range all {
				l.Heal()
			}
			return nil
		},
	}
}

func set(condition faultnet.Condition) func(*faultnet.Link) {
	return func(l *faultnet.Link) { l.Set(condition) }
}

// cutFromEtcd cuts an instance from all members, long enough to lose its lease or not.
func cutFromEtcd(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	return links("instance cut from etcd", time.Second, 8*time.Second, i.etcd, (*faultnet.Link).Cut)
}

// loseEtcd cuts an instance from all members until others have taken over.
func loseEtcd(c *cluster, random *rand.Rand) fault {
	f := cutFromEtcd(c, random)
	f.name, f.survived, f.least = "instance cut from etcd for long", len(c.instances) > 1, 0
	return f
}

// holdEtcd keeps what an instance asks etcd, or what it is answered, and delivers it late: perhaps after others have taken over.
func holdEtcd(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	condition := faultnet.Condition{HoldRequests: true}
	if random.IntN(2) == 0 {
		condition = faultnet.Condition{HoldAnswers: true}
	}
	some := i.etcd
	if random.IntN(3) == 0 {
		some = some[:1]
	}
	return links("instance held from etcd", time.Second, 12*time.Second, some, set(condition))
}

func slowEtcd(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	condition := faultnet.Condition{Delay: time.Duration(10+random.IntN(300)) * time.Millisecond}
	if random.IntN(2) == 0 {
		condition = faultnet.Condition{Rate: 16<<10 + random.IntN(256<<10)}
	}
	return links("instance slow to etcd", time.Second, 8*time.Second, i.etcd, set(condition))
}

func breakLinks(c *cluster, random *rand.Rand) fault {
	all := c.anyInstance(random).links()
	if random.IntN(2) == 0 {
		for _, i := range c.instances {
			all = append(all, i.links()...)
		}
	}
	return links("connections reset", 0, 0, all, (*faultnet.Link).Break)
}

// halfOpen ends connections at the server's side alone, and at last at the other side, too.
func halfOpen(c *cluster, random *rand.Rand) fault {
	all := c.anyInstance(random).links()
	f := links("connections half open", time.Second, 8*time.Second, all, (*faultnet.Link).HalfOpen)
	f.end = func(context.Context) error {
		for _, l := range all {
			l.Break()
		}
		return nil
	}
	return f
}

func cutClients(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	return links("clients cut", 0, 5*time.Second, []*faultnet.Link{i.clients, i.web}, (*faultnet.Link).Cut)
}

func holdClients(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	condition := faultnet.Condition{HoldRequests: random.IntN(2) == 0}
	condition.HoldAnswers = !condition.HoldRequests
	return links("clients held", time.Second, 8*time.Second, []*faultnet.Link{i.clients, i.web}, set(condition))
}

func slowClients(c *cluster, random *rand.Rand) fault {
	i := c.anyInstance(random)
	condition := faultnet.Condition{Delay: time.Duration(10+random.IntN(200)) * time.Millisecond}
	return links("clients slow", time.Second, 5*time.Second, []*faultnet.Link{i.clients, i.web}, set(condition))
}

func killMember(c *cluster, random *rand.Rand) fault {
	m := c.anyMember(random)
	return fault{
		name: "etcd member killed", survived: true, starts: true, least: 0, most: 3 * time.Second,
		begin: func(context.Context) error { return m.Kill() },
		end:   m.Start,
	}
}

func pauseMember(c *cluster, random *rand.Rand) fault {
	m := c.anyMember(random)
	return fault{
		name: "etcd member paused", survived: true, least: time.Second, most: 10 * time.Second,
		begin: func(context.Context) error { return m.Pause() },
		end:   func(context.Context) error { return m.Resume() },
	}
}

func killEveryMember(c *cluster, _ *rand.Rand) fault {
	return fault{
		name: "all etcd members killed", alone: true, least: 0, most: 3 * time.Second,
		begin: func(context.Context) error {
			var errs []error
			for _, m := range c.etcd.Members {
				errs = append(errs, m.Kill())
			}
			return errors.Join(errs...)
		},
		end: c.etcd.Restart,
	}
}

func moveLeader(c *cluster, random *rand.Rand) fault {
	m := c.anyMember(random)
	return fault{
		name: "etcd leader moved", survived: true,
		begin: func(ctx context.Context) error { return c.etcd.MoveLeader(ctx, m) },
	}
}

func compact(c *cluster, _ *rand.Rand) fault {
	return fault{
		name: "etcd compacted", survived: true,
		begin: func(ctx context.Context) error {
			_, err := c.etcd.Compact(ctx)
			return err
		},
	}
}

func defragment(c *cluster, random *rand.Rand) fault {
	m := c.anyMember(random)
	return fault{name: "etcd member defragmented", survived: true, begin: m.Defragment}
}

func noSpace(c *cluster, _ *rand.Rand) fault {
	return fault{
		name: "etcd without space", alone: true, least: time.Second, most: 8 * time.Second,
		begin: c.etcd.Alarm,
		end:   c.etcd.Disarm,
	}
}

func slowPeers(c *cluster, random *rand.Rand) fault {
	condition := faultnet.Condition{Delay: time.Duration(5+random.IntN(50)) * time.Millisecond}
	return links("etcd members slow to each other", time.Second, 6*time.Second, c.peers, set(condition))
}

// cutPeer resets the connections to one member. Its own to others remain.
func cutPeer(c *cluster, random *rand.Rand) fault {
	link := c.peers[random.IntN(len(c.peers))]
	return links("etcd member cut", time.Second, 6*time.Second, []*faultnet.Link{link}, (*faultnet.Link).Cut)
}

func (f *fault) lasts(random *rand.Rand) time.Duration {
	return f.least + time.Duration(random.Int64N(int64(f.most-f.least)+1))
}
