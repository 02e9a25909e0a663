package coordinator

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ClientNames returns client names that have outcomes in coordinator tc, some at a time: from is 0, then the next of the
// answer before, until that is -1. Names that change meanwhile are told by Events.OutcomesChanged.
func (g *Group) ClientNames(ctx context.Context, tc uint64, from int) (names []preserver.Newest, next int, err error) {
	c, err := g.find(tc)
	if err != nil {
		return nil, 0, err
	}
	answer, err := c.ask(ctx, &fsm.ListNames{From: from})
	if err != nil {
		return nil, 0, err
	}
	return answer.Retained.Names, answer.Retained.Next, nil
}

// ClientOutcomes returns the newest outcomes of a client name, at most limit. It waits its turn among the commands of the
// coordinator, and costs it time by limit.
func (g *Group) ClientOutcomes(ctx context.Context, tc uint64, key preserver.Key, limit int) (preserver.Shown, error) {
	c, err := g.find(tc)
	if err != nil {
		return preserver.Shown{}, err
	}
	answer, err := c.ask(ctx, &fsm.ShowName{Key: key, Limit: limit})
	if err != nil {
		return preserver.Shown{}, err
	}
	return answer.Retained.Shown, nil
}

// tellChange reports a durable record that changes what a client name shows.
func (c *Coordinator) tellChange(r *txn.Record) {
	changed := c.opts.Events.OutcomesChanged
	if changed == nil || r.ClientName == "" || !c.opts.Machine.Preserver.Enabled() {
		return
	}
	key := preserver.Key{Owner: r.Owner, Name: r.ClientName}
	switch {
	case r.Op == txn.OpUpdate && r.Status.Final() && r.Place > 0:
		changed(c.tc, OutcomeChange{Key: key, Place: r.Place, Millis: r.Time})
	case r.Op == txn.OpForget && r.Change > 0:
		changed(c.tc, OutcomeChange{Key: key, Place: r.Change, Millis: r.Time, Emptied: r.Place == r.Change})
	}
}
