package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Here ends transactions on topics of this process. It is a coordinator.Participants.
type Here interface {
	End(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))
	Settle(id txn.ID, participants []txn.Participant) (*txn.Settlement, func(error))
}

// Owners tells who owns topics.
type Owners interface {
	// Loaded reports whether this process has a topic loaded. It does not block.
	Loaded(name topicname.Name) bool
	// Owner reads which instance owns a topic, linearizably; empty: none does.
	Owner(ctx context.Context, name topicname.Name) (instance string, err error)
}

// Instances are the processes that share the store, as far as this one knows. No method blocks.
type Instances interface {
	Self() cluster.Instance
	Find(id string) (cluster.Instance, bool)
	// PlaceTopic is the instance that is to serve a topic which nobody owns; the zero Instance if none may.
	PlaceTopic(name string) cluster.Instance
}

// Peers reaches other instances.
type Peers interface {
	EndOnParticipant(ctx context.Context, to cluster.Instance, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))
}

// Participants implements coordinator.Participants.
type Participants struct {
	here      Here
	owners    Owners
	instances Instances
	peers     Peers

	mu    sync.Mutex // guards the rest
	known map[string]string
}

// maxKnown bounds the owners that are remembered, by topic.
const maxKnown = 10_000

// New returns the participants of all instances.
func New(here Here, owners Owners, instances Instances, peers Peers) *Participants {
	return &Participants{here: here, owners: owners, instances: instances, peers: peers, known: make(map[string]string)}
}

// End implements coordinator.Participants.
func (p *Participants) End(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	e := end{p, ctx, id, participant, action, lowWaterMark, done}
	name, err := topicname.Parse(participant.Topic)
	if err != nil || p.owners.Loaded(name) { // what is no name is refused there
		e.here()
		return
	}
	if owner, remembered := p.remembered(participant.Topic); remembered {
		e.there(owner)
		return
	}
	go e.whereOwned(name)
}

// Settle implements coordinator.Participants. What another instance serves it does not settle.
func (p *Participants) Settle(id txn.ID, participants []txn.Participant) (*txn.Settlement, func(error)) {
	return p.here.Settle(id, participants)
}

// end is one call of End.
type end struct {
	*Participants
	ctx          context.Context
	id           txn.ID
	participant  txn.Participant
	action       txn.Action
	lowWaterMark uint64
	done         func(error)
}

func (e *end) here() {
	e.Participants.here.End(e.ctx, e.id, e.participant, e.action, e.lowWaterMark, e.done)
}

func (e *end) there(owner cluster.Instance) {
	e.peers.EndOnParticipant(e.ctx, owner, e.id, e.participant, e.action, e.lowWaterMark, func(err error) {
		e.remember(e.participant.Topic, owner, err == nil)
		e.done(err)
	})
}

func (e *end) whereOwned(name topicname.Name) {
	owner, err := e.owner(e.ctx, name)
	switch {
	case err != nil:
		e.done(fmt.Errorf("%w: owner of %s: %w", txn.ErrNotReady, name, err))
	case owner.ID == e.instances.Self().ID:
		e.here()
	default:
		e.there(owner)
	}
}

// owner is the instance that serves a topic, or is to serve it.
func (p *Participants) owner(ctx context.Context, name topicname.Name) (cluster.Instance, error) {
	id, err := p.owners.Owner(ctx, name)
	if err != nil {
		return cluster.Instance{}, err
	}
	if owner, lives := p.instances.Find(id); lives {
		return owner, nil
	}
	placed := p.instances.PlaceTopic(name.String())
	if placed.ID == "" {
		return placed, errStopping
	}
	return placed, nil
}

var errStopping = errors.New("every instance is stopping")

// remembered returns the instance that owned a topic when it was last asked, if it still lives.
func (p *Participants) remembered(topic string) (cluster.Instance, bool) {
	p.mu.Lock()
	id, found := p.known[topic]
	p.mu.Unlock()
	if !found {
		return cluster.Instance{}, false
	}
	return p.instances.Find(id)
}

// remember notes that an instance owns a topic, or that it may not.
func (p *Participants) remember(topic string, owner cluster.Instance, owns bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !owns {
		delete(p.known, topic)
		return
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[topic] = owner.ID
}
