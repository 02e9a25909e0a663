package workload

import (
	"context"
	"math/rand/v2"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// bareTransactions opens transactions and ends them at once.
func (l *Load) bareTransactions(ctx context.Context) error {
	router, closeQuietly := l.route()
	defer closeQuietly()
	for ctx.Err() == nil {
		id, err := l.begin(ctx, router, l.ttl(), "")
		if err != nil {
			return err
		}
		if err := l.end(ctx, router, id, txn.Action(rand.IntN(2)), ""); err != nil {
			return err
		}
		Pause(ctx, askPause)
	}
	return nil
}

// forgottenTransactions opens and ends transactions whose outcomes are forgotten at once, so that the log soon is worth cleaning.
func (l *Load) forgottenTransactions(ctx context.Context) error {
	router, closeQuietly := l.route()
	defer closeQuietly()
	client, err := router.Coordinator(ctx, 0)
	if err != nil {
		return err
	}
	const width = 32
	answers := make(chan error, width)
	for ctx.Err() == nil {
		for range width {
			client.Start(wireclient.NewTxn(0, uint64(l.options.LongestTTL.Milliseconds()), ""), func(answer *pulsarproto.BaseCommand, err error) {
				if err == nil {
					err = wireclient.ErrorOf(answer)
				}
				if err != nil {
					answers <- err
					return
				}
				r := answer.GetNewTxnResponse()
				id := txn.ID{Most: r.GetTxnidMostBits(), Least: r.GetTxnidLeastBits()}
				client.Start(wireclient.EndTxn(id, txn.Commit, ""), func(_ *pulsarproto.BaseCommand, err error) { answers <- err })
			})
		}
		for range width {
			if err := <-answers; err != nil {
				return err
			}
		}
	}
	return nil
}
