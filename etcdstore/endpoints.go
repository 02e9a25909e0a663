package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// lookInterval is how often each member is asked for its state, and lookTimeout how long it may take.
	lookInterval = time.Second
	lookTimeout  = time.Second
	// mostMisses is how often in a row a member may not answer before requests are sent to others. Three seconds in all, so that a lease
	// of six that is renewed through a member that hangs is renewed through another in time. A member that is this slow loses its
	// cluster's leader, too: etcd's own patience is a second (--election-timeout).
	mostMisses = 2
	// mostSpared is how often in a row it may not answer before connections are closed on which something comes from it. Each look makes a
	// new one: a packet that is lost as it is made is sent again after a second, too late.
	mostSpared = 2 * mostMisses
)

// MixedClustersError says that endpoints belong to clusters that do not know each other.
type MixedClustersError struct{ Clusters map[string]uint64 } // by endpoint

func (e *MixedClustersError) Error() string {
	var all []string
	for endpoint, id := range e.Clusters {
		all = append(all, fmt.Sprintf("%s to %x", endpoint, id))
	}
	slices.Sort(all)
	return "the endpoints belong to different etcd clusters: " + strings.Join(all, ", ")
}

// endpoints keeps a client on members that answer and belong to its cluster. A member that hangs would make each request that
// it is given an unknown result.
type endpoints struct {
	all         []string
	client      *clientv3.Client
	connections *connections
	underway    *underway
	tls         *tls.Config // nil: none
	log         zerolog.Logger
	tasks       sync.WaitGroup

	// used by one goroutine
	cluster uint64
	term    uint64         // of raft, that of the newest leader seen; 0: none was. Each leader has one of its own
	oldest  uint64         // leaders of terms before it are old news
	elected time.Time      // when the last look saw another leader than the one before; zero: it did not
	applied uint64         // what the furthest member had applied by the last look
	misses  map[string]int // in a row
}

// newEndpoints returns endpoints without a client.
func newEndpoints(all []string, config *tls.Config, log zerolog.Logger) *endpoints {
	return &endpoints{
		all: all, connections: newConnections(), underway: newUnderway(), tls: config, log: log, misses: make(map[string]int),
	}
}

// answer is what one member said of itself, or why it did not.
type answer struct {
	endpoint string
	status   *clientv3.StatusResponse
	err      error
}

// errLearner: such a member refuses every request but this one.
var errLearner = errors.New("it is a learner, which serves nobody until it is promoted")

// ask asks all members at once.
func (e *endpoints) ask(ctx context.Context, timeout time.Duration) []answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make([]answer, len(e.all))
	var asked sync.WaitGroup
	for i, endpoint := range e.all {
		asked.Go(func() {
			status, err := e.client.Status(ctx, endpoint)
			if err == nil && status.IsLearner {
				err = errLearner
			}
			answers[i] = answer{endpoint, status, err}
		})
	}
	asked.Wait()
	return answers
}

// meet asks all members for the first time and takes the cluster that they belong to. Errors: *MixedClustersError; none
// answers.
func (e *endpoints) meet(ctx context.Context, patience time.Duration) ([]answer, error) {
	answers := e.ask(ctx, patience)
	clusters := make(map[string]uint64)
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		e.cluster = a.status.Header.GetClusterId()
		clusters[a.endpoint] = e.cluster
	}
	for _, id := range clusters {
		if id != e.cluster {
			return nil, &MixedClustersError{clusters}
		}
	}
	if len(clusters) == 0 {
		return nil, fmt.Errorf("no endpoint of etcd answers: %w", e.reasons(ctx, answers))
	}
	for _, a := range answers {
		if a.err != nil {
			e.tell(ctx, a)
			e.misses[a.endpoint] = mostMisses
		}
	}
	e.turn(true)
	e.follow(e.lead(answers))
	return answers, nil
}

// silence is the error of a cluster that does not even take credentials in time.
func (e *endpoints) silence(ctx context.Context, err error) error {
	answers := make([]answer, len(e.all))
	for i, endpoint := range e.all {
		answers[i] = answer{endpoint: endpoint, err: err}
	}
	return fmt.Errorf("no endpoint of etcd answers: %w", e.reasons(ctx, answers))
}

func (e *endpoints) reasons(ctx context.Context, answers []answer) error {
	reasons := make([]error, len(answers))
	var asked sync.WaitGroup
	for i := range answers {
		asked.Go(func() { reasons[i] = e.reason(ctx, answers[i]) })
	}
	asked.Wait()
	return errors.Join(reasons...)
}

// tell logs that a member is left out. To find the reason takes as long as a look at all members does.
func (e *endpoints) tell(ctx context.Context, a answer) {
	e.tasks.Go(func() {
		e.log.Warn().Err(e.reason(ctx, a)).Msg("etcd endpoint left out until it answers")
	})
}

// reason is why a member did not answer.
func (e *endpoints) reason(ctx context.Context, a answer) error {
	err := a.err
	if errors.Is(err, context.DeadlineExceeded) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		if better := unreachable(ctx, a.endpoint, e.tls); better != nil {
			err = better
		}
	}
	return fmt.Errorf("%s: %w", a.endpoint, explain(err))
}

var (
	// errCutOff: what such a member is asked to store has an unknown result, and what it was asked, too.
	errCutOff = errors.New("it is cut off from the members that have a leader")
	// errBehind: it refuses requests, or lets them wait, until it has what the others have.
	errBehind = errors.New("it has not yet caught up with the others")
)

// judge takes answers into account. It returns those of members that may be given requests, and notes in the others why they may not.
func (e *endpoints) judge(ctx context.Context, answers []answer) (good []answer) {
	lead := e.lead(answers)
	changed := false
	for i, a := range answers {
		a.err = e.fault(a, lead)
		answers[i] = a
		if a.err == nil {
			good = append(good, a)
			if e.misses[a.endpoint] >= mostMisses {
				changed = true
				e.log.Info().Str("endpoint", a.endpoint).Msg("etcd endpoint answers")
			}
			e.misses[a.endpoint] = 0
			continue
		}
		e.misses[a.endpoint]++
		if e.misses[a.endpoint] == mostMisses {
			changed = true
			e.tell(ctx, a)
		}
	}
	e.follow(lead)
	e.turn(changed)
	e.cut(answers, confirmed(answers, lead))
	e.noteApplied(good)
	return good
}

// fault is why a member may be given no requests; nil: it may.
func (e *endpoints) fault(a answer, lead *clientv3.StatusResponse) error {
	switch {
	case a.err != nil:
		return a.err
	case a.status.Header.GetClusterId() != e.cluster:
		e.misses[a.endpoint] = max(e.misses[a.endpoint], mostMisses-1) // it is no better at the next look
		return fmt.Errorf("it belongs to cluster %x, this process uses %x", a.status.Header.GetClusterId(), e.cluster)
	case lead != nil && a.status.Leader == 0:
		return errCutOff
	case lead != nil && a.status.RaftTerm < lead.RaftTerm:
		return errBehind
	case e.misses[a.endpoint] >= mostMisses && a.status.RaftAppliedIndex < e.applied:
		return errBehind
	}
	return nil
}

// noteApplied keeps what members who come back have to catch up with: nothing, where all were left out, since indexes and terms begin
// anew when a cluster is restored.
func (e *endpoints) noteApplied(good []answer) {
	if len(e.used()) == 0 {
		e.applied, e.oldest = 0, 0
	}
	for _, a := range good {
		e.applied = max(e.applied, a.status.RaftAppliedIndex)
	}
}

// lead is the answer that knows of the newest leader; nil: none knows of any.
func (e *endpoints) lead(answers []answer) (lead *clientv3.StatusResponse) {
	for _, a := range answers {
		if a.err != nil || a.status.Leader == 0 || a.status.Header.GetClusterId() != e.cluster {
			continue
		}
		if lead == nil || a.status.RaftTerm > lead.RaftTerm {
			lead = a.status
		}
	}
	return lead
}

// confirmed is the term of the leader that lead names, if that member says so, too; 0: it does not. In an election one member still names
// a leader that hangs while another knows of none: that cuts nobody off.
func confirmed(answers []answer, lead *clientv3.StatusResponse) uint64 {
	if lead == nil {
		return 0
	}
	for _, a := range answers {
		if a.err == nil && a.status.Header.GetMemberId() == lead.Leader && a.status.Leader == lead.Leader && a.status.RaftTerm == lead.RaftTerm {
			return lead.RaftTerm
		}
	}
	return 0
}

// follow gives up what the leader before may have been asked: what has waited long at the look that sees another one, and what still
// waits at the next. One that lags names a leader that was, and one that was elected again has forgotten what it was passed before.
func (e *endpoints) follow(lead *clientv3.StatusResponse) {
	e.underway.lose(e.elected)
	e.elected = time.Time{}
	if lead == nil || lead.RaftTerm == e.term || lead.RaftTerm < e.oldest {
		return
	}
	if e.term != 0 {
		e.elected = time.Now()
		e.underway.lose(e.elected.Add(-lookInterval))
	}
	e.term, e.oldest = lead.RaftTerm, lead.RaftTerm
}

// turn directs the client to the members that answer. If none does, it stays where it is.
func (e *endpoints) turn(changed bool) {
	if used := e.used(); changed && len(used) > 0 {
		e.client.SetEndpoints(used...)
	}
}

// used returns the endpoints that are not left out.
func (e *endpoints) used() (used []string) {
	for _, endpoint := range e.all {
		if e.misses[endpoint] < mostMisses {
			used = append(used, endpoint)
		}
	}
	return used
}

// cut ends what is under way at members that are left out, or cut off, while others answer. On a connection that stands answers may come
// although no new one is made in time: such a member is spared for some looks, not for all, since one that stores nothing may renew leases.
// One that knows of no leader is cut at once where another does lead, in term.
func (e *endpoints) cut(answers []answer, term uint64) {
	var lost, silent []string
	for _, a := range answers {
		misses := e.misses[a.endpoint]
		switch {
		case errors.Is(a.err, errCutOff) && a.status.RaftTerm <= term, misses >= mostMisses && a.status != nil, misses >= mostSpared:
			lost = append(lost, a.endpoint)
		case misses >= mostMisses:
			silent = append(silent, a.endpoint)
		}
	}
	if len(e.used()) == 0 {
		lost, silent = nil, nil
	}
	e.connections.cut(lost, silent)
}
