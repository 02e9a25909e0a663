package sim

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
)

// terms shows an etcdleader.Leader as a coordinator.Leader.
type terms struct{ *etcdleader.Leader }

func (t terms) Win(ctx context.Context, tc uint64) (coordinator.Term, error) {
	term, err := t.Leader.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	return term, nil
}
