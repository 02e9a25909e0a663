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
	lookTimeout  = 2 * time.Second
	// mostMisses is how often in a row a member may not answer before requests are sent to others.
	mostMisses = 2
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
	all    []string
	client *clientv3.Client
	tls    *tls.Config // nil: none
	log    zerolog.Logger

	// used by one goroutine
	cluster uint64
	misses  map[string]int // in a row
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
			e.log.Warn().Err(e.reason(ctx, a)).Msg("etcd endpoint left out until it answers")
			e.misses[a.endpoint] = mostMisses
		}
	}
	e.turn()
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

// errCutOff: what such a member is asked to store has an unknown result.
var errCutOff = errors.New("it is cut off from the members that have a leader")

// judge takes answers into account; see turn. It returns those of the cluster.
func (e *endpoints) judge(ctx context.Context, answers []answer) []answer {
	var good []answer
	changed := false
	led := slices.ContainsFunc(answers, func(a answer) bool {
		return a.err == nil && a.status.Leader != 0 && a.status.Header.GetClusterId() == e.cluster
	})
	for _, a := range answers {
		if led && a.err == nil && a.status.Leader == 0 {
			a.err = errCutOff
		}
		if a.err == nil && a.status.Header.GetClusterId() != e.cluster {
			a.err = fmt.Errorf("it belongs to cluster %x, this process uses %x", a.status.Header.GetClusterId(), e.cluster)
			e.misses[a.endpoint] = max(e.misses[a.endpoint], mostMisses-1)
		}
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
			e.log.Warn().Err(e.reason(ctx, a)).Msg("etcd endpoint left out until it answers")
		}
	}
	if changed {
		e.turn()
	}
	return good
}

// turn directs the client to the members that answer. If none does, it stays where it is.
func (e *endpoints) turn() {
	answering := slices.DeleteFunc(slices.Clone(e.all), func(endpoint string) bool { return e.misses[endpoint] >= mostMisses })
	if len(answering) > 0 {
		e.client.SetEndpoints(answering...)
	}
}
