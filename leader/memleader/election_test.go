package memleader_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/leader/leadertest"
	"github.com/pulsar-tc/pulsar-tc/leader/memleader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contender shows a Contender as the contract's.
type contender struct{ *memleader.Contender }

func (c contender) Win(ctx context.Context, tc uint64) (leadertest.Term, error) {
	term, err := c.Contender.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	return term, nil
}

func TestContract(t *testing.T) {
	leadertest.Run(t, func(testing.TB) leadertest.Election {
		election := memleader.NewElection()
		return leadertest.Election{
			Contender: func(testing.TB) leadertest.Contender { return contender{election.Contender()} },
			Place:     func(c leadertest.Contender) { election.Place(c.(contender).Contender) },
			Holds:     func(_ testing.TB, term leadertest.Term) bool { return term.(*memleader.Term).Holds() },
			Expire:    func(testing.TB, leadertest.Term) { election.Expire(1) },
		}
	})
}
