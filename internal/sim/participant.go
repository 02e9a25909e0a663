package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/participant/embedded"
	"github.com/pulsar-tc/pulsar-tc/participant/remote"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// network carries calls between instances.
type network struct{ world *world }

// call asks another process something; done is called exactly once: with ctx's error if that ends first, and with errCut some
// time after the question or the answer was lost, as a connection tells.
func (n *network) call(ctx context.Context, from, to *process, label string, start func(done func(error)), done func(error)) {
	w := n.world
	label = w.unique(from.name + "-" + to.name + " " + label)
	var once sync.Once
	finish := func(err error) { once.Do(func() { done(err) }) }
	stop := context.AfterFunc(ctx, func() { finish(fmt.Errorf("%s: %w", label, context.Cause(ctx))) })
	var answer func(error)
	cut := func() { w.after(w.travel("cut", label, 1), label+" cut", func() { answer(errCut) }) }
	alive := context.AfterFunc(to.ctx, cut)
	answer = func(err error) {
		alive()
		if stop() {
			finish(err)
		}
	}
	faults := &w.mix.network
	if w.happens("peer call lost", label, faults.lost) {
		cut()
		return
	}
	back := func(err error) {
		if w.happens("peer answer lost", label, faults.answerLost) {
			cut()
			return
		}
		w.at(to.leaves(w.travel("peer answer", label, faults.answerLate)), label+" <", func() { from.whenAwake(label+" <", func() { answer(err) }) })
	}
	w.at(from.leaves(w.travel("peer call", label, faults.late)), label+" >", func() {
		to.whenAwake(label, func() {
			w.repeat("peer call", label, to, func() { start(func(error) {}) })
			start(back)
		})
	})
}

// whenAwake does something at a process once that is not paused; at a dead one, never.
func (p *process) whenAwake(label string, do func()) {
	switch until := p.pausedUntil(); {
	case p.isDead():
	case until.After(time.Now()):
		p.world.at(until, label+" wakes", func() { p.whenAwake(label, do) })
	default:
		do()
	}
}

// participants are the topics as the coordinators of a process see them: the product's own, and faults before them.
type participants struct {
	*process
	ends coordinator.Participants
}

// newParticipants returns the topics of the process and, if there are others, theirs.
func (p *process) newParticipants() participants {
	here := embedded.New(ownTopics{p})
	if p.world.mix.alone {
		return participants{p, here}
	}
	return participants{p, remote.New(here, p.topics, p.cluster, peers{p})}
}

// End implements coordinator.Participants.
func (s participants) End(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	w := s.world
	label := w.unique(fmt.Sprintf("%s end %v %s %v", s.name, id, participant, action))
	w.oracle.told(s.process, id, participant, action)
	if w.happens("participant errs", label, w.mix.participantErrs) {
		errs := sync.OnceFunc(func() { done(txn.ErrNotReady) })
		w.after(w.travel("participant", label, 0), label+" errs", errs)
		context.AfterFunc(ctx, func() {
			if w.isOver() { // no event comes any more
				errs()
			}
		})
		return
	}
	if w.happens("participant hears it twice", label, w.mix.participantRepeats) {
		s.ends.End(ctx, id, participant, action, lowWaterMark, func(error) {})
	}
	s.ends.End(ctx, id, participant, action, lowWaterMark, done)
}

// ownTopics are the topics of a process as END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION reach them.
type ownTopics struct{ *process }

// EndTxn implements embedded.Topics.
func (t ownTopics) EndTxn(_ context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	t.endTxn(id, participant, action, lowWaterMark, done)
}

// Settle implements embedded.Topics.
func (t ownTopics) Settle(id txn.ID, all []txn.Participant) (*txn.Settlement, func(error)) {
	return t.topics.Settle(id, all)
}

// peers are the other instances as participant/remote reaches them.
type peers struct{ *process }

// EndOnParticipant implements remote.Peers.
func (s peers) EndOnParticipant(ctx context.Context, instance cluster.Instance, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	w := s.world
	to := named(w.running(), instance.ID)
	if to == nil {
		done(txn.ErrNotReady)
		return
	}
	w.network.call(ctx, s.process, to, fmt.Sprintf("end %v %s %v", id, participant, action), func(done func(error)) {
		to.endTxn(id, participant, action, lowWaterMark, done)
	}, done)
}

// Settle implements coordinator.Participants. Half of the commits that topics could settle are driven.
func (s participants) Settle(id txn.ID, all []txn.Participant) (*txn.Settlement, func(error)) {
	if s.world.chance.unit("driven", id.String()) < 0.5 {
		return nil, nil
	}
	return s.ends.Settle(id, all)
}

// endTxn is END_TXN_ON_PARTITION or END_TXN_ON_SUBSCRIPTION as it arrives at the process.
func (p *process) endTxn(id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	w := p.world
	w.oracle.told(p, id, participant, action)
	d := &history.Decision{
		Span: history.Span{Client: p.name, Call: w.history.Now(), Return: history.Never},
		ID:   id, Participant: participant.String(), Action: action, LowWaterMark: lowWaterMark,
	}
	w.mu.Lock()
	w.decisions = append(w.decisions, d)
	w.mu.Unlock()
	p.topics.EndTxn(p.ctx, id, participant, action, lowWaterMark, func(err error) {
		if err == nil {
			w.mu.Lock()
			d.Answer, d.Return = history.Done, w.history.Now()
			w.mu.Unlock()
		}
		done(err)
	})
}

// registrar is the coordinators as the topics of a process see them. It implements topic.Registrar.
type registrar struct{ *process }

// Count implements topic.Registrar.
func (r registrar) Count() uint64 { return uint64(r.world.mix.coordinators) }

// AddParticipants implements topic.Registrar.
func (r registrar) AddParticipants(ctx context.Context, id txn.ID, caller cnx.Caller, added []txn.Participant, done func(error)) {
	p, w := r.process, r.world
	if id.Most >= r.Count() {
		done(&txn.NotFoundError{ID: id})
		return
	}
	if p.group.Expected(id.Most) {
		p.group.AddParticipants(ctx, id, callerOf(caller), added, done)
		return
	}
	label := fmt.Sprintf("add %v %s", id, added[0])
	to := w.leaderOf(id.Most, w.unique(p.name+" "+label))
	if to == nil {
		done(txn.ErrNotReady)
		return
	}
	w.network.call(ctx, p, to, label, func(done func(error)) { to.group.AddParticipants(to.ctx, id, callerOf(caller), added, done) }, done)
}

func callerOf(caller cnx.Caller) fsm.Caller {
	return fsm.Caller{Owner: txn.Owner{Role: caller.Role, Known: caller.Known}, Super: caller.Super}
}

// relay asks who is to lead a coordinator that was handed over. It implements coordinator.Relay.
type relay struct{ *process }

// ask is one question of a relay. An answer that is lost is txn.ErrCoordinatorNotFound.
func (r relay) ask(ctx context.Context, tc uint64, what string, start func(to *process, done func(error)), done func(error)) {
	w := r.world
	to := named(w.running(), placement(r).Place(tc))
	if to == nil {
		done(txn.ErrCoordinatorNotFound)
		return
	}
	w.network.call(ctx, r.process, to, "relay "+what, func(done func(error)) { start(to, done) }, func(err error) {
		if errors.Is(err, errCut) || ctx.Err() != nil {
			err = txn.ErrCoordinatorNotFound
		}
		done(err)
	})
}

// NewTxn implements coordinator.Relay.
func (r relay) NewTxn(ctx context.Context, tc uint64, cmd *fsm.NewTxn, done func(txn.ID, error)) {
	var mu sync.Mutex
	var id txn.ID // guarded by mu
	r.ask(ctx, tc, "new", func(to *process, answer func(error)) {
		to.group.NewTxn(to.ctx, tc, cmd.Owner, cmd.TTLMillis, cmd.ClientName, cmd.Named, func(opened txn.ID, err error) {
			mu.Lock()
			id = opened
			mu.Unlock()
			answer(err)
		})
	}, func(err error) {
		mu.Lock()
		opened := id
		mu.Unlock()
		done(opened, err)
	})
}

// AddParticipants implements coordinator.Relay.
func (r relay) AddParticipants(ctx context.Context, tc uint64, cmd *fsm.AddParticipants, done func(error)) {
	id := txn.ID{Most: tc, Least: cmd.Least}
	r.ask(ctx, tc, fmt.Sprint("add ", id), func(to *process, answer func(error)) {
		to.group.AddParticipants(to.ctx, id, cmd.Caller, cmd.Participants, answer)
	}, done)
}

// EndTxn implements coordinator.Relay.
func (r relay) EndTxn(ctx context.Context, tc uint64, cmd *fsm.EndTxn, done func(error)) {
	id := txn.ID{Most: tc, Least: cmd.Least}
	r.ask(ctx, tc, fmt.Sprintf("end %v %s", id, cmd.Action), func(to *process, answer func(error)) {
		to.group.EndTxn(to.ctx, id, cmd.Caller, cmd.Action, cmd.Named, answer)
	}, done)
}
