package sim

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// mix is what a seed makes of the world: how large it is, and which faults happen how often. Every seed leaves out some kinds
// of faults, so that each kind meets calm in all the others, too.
type mix struct {
	instances, coordinators, topics, clients int
	steps                                    int // of each client
	maxOps                                   int // of one etcd transaction
	ttl                                      time.Duration
	idle                                     time.Duration // after which a topic leaves memory
	alone                                    bool          // the only instance has the store to itself
	jumps                                    bool          // clocks jump
	clockAtStart                             float64       // probability that the clock of a process jumps when it starts again
	kept                                     time.Duration // for how long an outcome must be known; 0: outcomes are not kept
	keptCount                                int           // outcomes of one name
	slack                                    int64         // bytes of a log that are never cleaned
	page                                     int64         // entries of a log that are read at once; 0: as many as the log likes
	reads                                    bool          // somebody reads topics meanwhile
	visits                                   bool          // somebody has subscriptions for one transaction each
	waits                                    bool          // in the end for the deadlines of transactions

	// The probabilities of faults of one request to the store.
	store storeFaults
	// Those of one message between a client and an instance, or between two instances.
	network networkFaults
	// Those of one call of a participant.
	participantErrs, participantRepeats float64
	// misrouted is the probability that a request goes to an instance that is not responsible.
	misrouted float64
	// plan are faults at a time.
	plan []planned
}

type storeFaults struct {
	lost, answerLost float64 // nobody hears anything more
	late, answerLate float64 // by seconds
	refused, failed  float64 // an error, not applied or applied
	failedEarly      float64 // an error, then applied within seconds
	unnoticed        float64 // that a lease is gone, for seconds
	killedBefore     float64 // the process, as a write is about to be applied
	killedBehind     float64 // the process, as a write was applied
	// The process stands still before it hears of what was applied, or read.
	stalledWriting, stalledReading float64
}

type networkFaults struct {
	lost, answerLost, late, answerLate float64
	repeated                           float64 // the frame comes again, later
	cut                                float64 // the connection, when an answer is under way
}

// planned is a fault at a time.
type planned struct {
	name      string
	kind      plannedKind
	at, lasts time.Duration
	which     uint64 // drawn, of instances, topics or clients
}

type plannedKind uint8

const (
	pausing    plannedKind = iota // an instance stands still
	cutting                       // an instance and the store do not reach each other
	killing                       // an instance is killed, and started again
	stopping                      // an instance is stopped in order, and started again
	jumping                       // the clock of an instance
	filling                       // the store refuses writes for lack of space
	compacting                    // the history of the store
	unloading                     // a topic
	deleting                      // the topic of which nothing is expected
	plannedKinds
)

var plannedNames = [plannedKinds]string{"pause", "cut", "kill", "stop", "jump", "fill", "compact", "unload", "delete"}

// horizon is for how long faults happen.
const horizon = 20 * time.Second

func newMix(seed uint64) mix {
	r := rand.New(rand.NewPCG(seed, 0x51a))
	m := mix{
		instances: 1 + r.IntN(3), coordinators: 1 + r.IntN(2), topics: 2 + r.IntN(2), clients: 2 + r.IntN(3),
		steps: 12 + r.IntN(24), maxOps: 128, ttl: time.Duration(2+r.IntN(14)) * time.Second, idle: time.Minute,
	}
	m.alone = m.instances == 1 && r.IntN(2) == 0
	if r.IntN(4) == 0 {
		m.maxOps = 24
	}
	m.kept, m.keptCount = keptFor, 1000
	if r.IntN(3) == 0 {
		m.kept, m.keptCount = 0, 0
	}
	if r.IntN(2) == 0 {
		m.slack = 400 + r.Int64N(3<<10)
	}
	if r.IntN(2) == 0 {
		m.page = 1 + r.Int64N(4)
	}
	m.waits = r.IntN(3) == 0
	m.reads = r.IntN(2) == 0
	if r.IntN(4) == 0 {
		m.idle = 2 * time.Second
	}
	for _, p := range []*float64{
		&m.store.lost, &m.store.answerLost, &m.store.late, &m.store.answerLate, &m.store.refused, &m.store.failed, &m.store.failedEarly,
		&m.store.killedBefore, &m.store.killedBehind, &m.store.stalledWriting,
	} {
		*p = often(r, 0.02)
	}
	if r.IntN(2) == 0 {
		m.store.unnoticed = 0.7
	}
	m.store.stalledReading = often(r, 0.1)
	if r.IntN(2) == 0 {
		m.clockAtStart, m.jumps = 0.7, true
	}
	for _, p := range []*float64{
		&m.network.lost, &m.network.answerLost, &m.network.late, &m.network.answerLate, &m.network.repeated, &m.network.cut,
		&m.participantErrs, &m.participantRepeats, &m.misrouted,
	} {
		*p = often(r, 0.1)
	}
	for kind := range plannedKinds {
		m.planSome(r, kind)
	}
	m.visits = r.IntN(3) == 0
	return m
}

// often is 0 for half of the kinds, else a probability of about most.
func often(r *rand.Rand, most float64) float64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return most * r.Float64() * r.Float64()
}

func (m *mix) planSome(r *rand.Rand, kind plannedKind) {
	if r.IntN(2) == 0 {
		return
	}
	for n := range 1 + r.IntN(3) {
		p := planned{name: plannedNames[kind] + " " + strconv.Itoa(n), kind: kind, which: r.Uint64()}
		p.at = time.Duration(r.Int64N(int64(horizon)))
		p.lasts = time.Duration(r.Int64N(int64(8 * time.Second)))
		m.plan = append(m.plan, p)
		m.jumps = m.jumps || kind == jumping
	}
}
