package sim

import (
	"context"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
)

// terms shows an etcdleader.Leader as a coordinator.Leader whose terms hear late that they are lost: of a process that stood
// still, the part that hears it may be the last to wake.
type terms struct {
	*etcdleader.Leader
	process *process
}

func (t terms) Win(ctx context.Context, tc uint64) (coordinator.Term, error) {
	term, err := t.Leader.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	if t.process.world.mix.unaware == 0 {
		return term, nil
	}
	late := lateTerm{term, make(chan struct{})}
	t.process.tasks.Go(func() {
		<-term.Lost()
		t.process.sleep(t.process.world.mix.unaware)
		close(late.lost)
	})
	return late, nil
}

type lateTerm struct {
	coordinator.Term
	lost chan struct{}
}

// Lost implements coordinator.Term.
func (t lateTerm) Lost() <-chan struct{} { return t.lost }

// sleep returns early if the process dies.
func (p *process) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.dead:
	}
}
