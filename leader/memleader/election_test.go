package memleader_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/leader/leadertest"
	"github.com/pulsar-tc/pulsar-tc/leader/memleader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	leadertest.Run(t, func(testing.TB) leadertest.Election {
		var election memleader.Election
		return leadertest.Election{
			Contender: func(testing.TB) leadertest.Contender {
				contender := election.Contender()
				return func(ctx context.Context, tc uint64) (leadertest.Term, error) {
					term, err := contender.Win(ctx, tc)
					if err != nil {
						return nil, err
					}
					return term, nil
				}
			},
			Holds:  func(_ testing.TB, term leadertest.Term) bool { return term.(*memleader.Term).Holds() },
			Expire: func(testing.TB, leadertest.Term) { election.Expire(1) },
		}
	})
}
