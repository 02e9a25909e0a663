package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/pulsaradmin"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// inspection shows a coordinator.Group to operators.
type inspection struct {
	group  *coordinator.Group
	server *Server
}

// ledHere returns nil if this process leads the coordinator or is to. Errors: *admin.ElsewhereError, txn.ErrNotReady.
func (i inspection) ledHere(ctx context.Context, tc uint64) error {
	err := i.explain(i.server.ledHere(ctx, tc))
	var led *pulsaradmin.LedElsewhereError
	if !errors.As(err, &led) {
		return err
	}
	if cmp.Or(led.Leader.WebURL, led.Leader.WebURLTLS) == "" {
		return fmt.Errorf("%w: %w, which has no port for HTTP", txn.ErrNotReady, err)
	}
	return &admin.ElsewhereError{
		WebURL: led.Leader.WebURL, WebURLTLS: led.Leader.WebURLTLS, Followed: i.server.options.followed(),
	}
}

func (i inspection) List(ctx context.Context, filter admin.Filter) ([]admin.Transaction, error) {
	if i.group.Count() == 0 {
		return nil, fmt.Errorf("%w: transactions are off (transactionCoordinatorEnabled=false)", txn.ErrNotReady)
	}
	before := time.Now().Add(-filter.OlderThan).UnixMilli()
	found, err := i.group.List(ctx, func(d *fsm.Description) bool {
		return d.Opened <= before &&
			(filter.State == "" || d.Status.String() == filter.State) &&
			(filter.ClientName == "" || d.ClientName == filter.ClientName)
	}, filter.Limit)
	if err != nil {
		return nil, i.explain(err)
	}
	all := make([]admin.Transaction, len(found))
	for n := range found {
		all[n] = present(&found[n])
	}
	return all, nil
}

func (i inspection) Describe(ctx context.Context, id txn.ID) (admin.Transaction, error) {
	if err := i.ledHere(ctx, id.Most); err != nil {
		return admin.Transaction{}, err
	}
	found, err := i.group.Describe(ctx, id)
	if err != nil {
		return admin.Transaction{}, i.explain(err)
	}
	return present(&found), nil
}

func (i inspection) Resolve(ctx context.Context, id txn.ID, participant txn.Participant, operator string) error {
	if err := i.ledHere(ctx, id.Most); err != nil {
		return err
	}
	return i.explain(i.group.Resolve(ctx, id, participant, operator))
}

// explain adds to an error why the store is away, if it is.
func (i inspection) explain(err error) error {
	if away := i.server.store.Away(); errors.Is(err, txn.ErrNotReady) && away != "" {
		return fmt.Errorf("%w; the store is away: %s", err, away)
	}
	return err
}

// storeFull is for the embedded store and for a cluster.
const storeFull = "the store is full, the transaction ends when there is space: free the disk or raise etcdQuotaBytes; " +
	"an etcd cluster is to be compacted, defragmented and disarmed"

func present(d *fsm.Description) admin.Transaction {
	opened := time.UnixMilli(d.Opened).UTC()
	t := admin.Transaction{
		ID: d.ID.String(), State: d.Status.String(), Owner: d.Owner.Role, ClientName: d.ClientName,
		OpenedAt: opened, DeadlineAt: opened.Add(time.Duration(d.TTLMillis) * time.Millisecond),
		TimeoutMillis: d.TTLMillis, TimedOut: d.TimedOut,
	}
	if d.Held {
		t.Reason = storeFull
	}
	if d.Ended != 0 {
		ended := time.UnixMilli(d.Ended).UTC()
		t.EndedAt = &ended
	}
	for n := range d.Participants {
		p := &d.Participants[n]
		t.Participants = append(t.Participants, admin.Participant{
			Topic: p.Participant.Topic, Subscription: p.Participant.Subscription, State: participantState(d.Status, p),
			Attempts: p.Attempts, Failure: p.Failure,
		})
	}
	return t
}

func participantState(status txn.Status, p *fsm.ParticipantState) string {
	switch {
	case p.Resolved:
		return "resolved"
	case p.Done:
		return "applied"
	case status == txn.Open:
		return "registered"
	}
	return "waiting"
}
