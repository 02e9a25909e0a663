package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// attachment is what producers and consumers have in common: the life of one on its connection. It is in its session's map from
// the request on, and its id is free again when it is out of it.
type attachment struct {
	session *session
	id      uint64
	right   right              // nil: rights are not checked
	ctx     context.Context    // of the attaching
	cancel  context.CancelFunc // of ctx
	settled chan struct{}      // closed when the attaching has succeeded or failed
	cost    int                // of session.attachedBytes
	free    func()             // takes it out of its map; session.mu is held

	state attachmentState // guarded by session.mu
}

// attachmentState is how far a producer or consumer has got.
type attachmentState uint8

const (
	attaching attachmentState = iota
	attached
	detaching // by the client, or with the connection
	lost      // disconnected by the topic
)

// attachmentCost is about what a producer or consumer takes, here and in its topic, beside the bytes of its command: its topic
// keeps the name and the metadata, and the whole command as long as the producer waits to become exclusive.
const attachmentCost = 4 << 10

var errTooManyAttached = cnx.Refuse(pulsarproto.ServerError_TooManyRequests, "too many producers and consumers on one connection")

// attach counts a producer or consumer that is to be attached, unless it is one too many; mu is held.
func (s *session) attach(id uint64, right right, cost int, free func()) (attachment, error) {
	if s.attachedBytes+cost > s.options.MaxAttachedBytes {
		return attachment{}, errTooManyAttached
	}
	s.attachedBytes += cost
	ctx, cancel := context.WithCancel(s.ctx)
	return attachment{
		session: s, id: id, right: right, ctx: ctx, cancel: cancel, settled: make(chan struct{}), cost: cost, free: free,
	}, nil
}

// remove makes the id free again; mu is held.
func (a *attachment) remove() {
	a.free()
	a.session.attachedBytes -= a.cost
}

// forget removes one that could not be attached, unless whoever detaches it does so.
func (a *attachment) forget() {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	if a.state != detaching {
		a.remove()
	}
}

// leave reports whether the caller is the first who wants it detached and has to do that; mu is held.
func (a *attachment) leave() bool {
	first := a.state != detaching
	a.state = detaching
	return first
}

// notReady refuses a producer or consumer while another one of the same id is coming or going.
//
// Source: ServerCnx.handleProducer, "Producer is already present on the connection".
func notReady(what string, state attachmentState) error {
	text := what + " is already present on the connection and is being created"
	if state != attaching {
		text = what + " is already present on the connection and is being closed"
	}
	return cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, text)
}
