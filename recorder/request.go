package recorder

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// pending is a request under way.
type pending struct {
	connection  *connection
	command     *pulsarproto.BaseCommand
	answers     chan *frame
	started     time.Time
	description string
}

// reply is what became of a request: a frame, a closed connection, or nothing in time.
type reply struct {
	frame  *frame
	closed bool
	none   bool
	took   time.Duration
}

// ok reports an answer without an error.
func (a *reply) ok() bool {
	if a == nil || a.frame == nil || a.frame.command.GetType() == pulsarproto.BaseCommand_ERROR {
		return false
	}
	body := bodyOf(a.frame.command)
	if body == nil {
		return true
	}
	field := body.Descriptor().Fields().ByName("error")
	return field == nil || !body.Has(field)
}

// start sends command, with a new request id if it has room for one and none is set.
func (x *connection) start(command *pulsarproto.BaseCommand) *pending {
	id := requestIDs.Add(1)
	if body := bodyOf(command); body != nil {
		if field := body.Descriptor().Fields().ByName("request_id"); field != nil && body.Has(field) {
			id = body.Get(field).Uint()
		} else if field != nil {
			body.Set(field, protoreflect.ValueOfUint64(id))
		}
	}
	p := &pending{connection: x, command: command, answers: make(chan *frame, 1), description: x.recording.describe(command)}
	x.mu.Lock()
	x.pending[id] = p
	x.mu.Unlock()
	p.started = time.Now()
	x.write(command)
	return p
}

// wait returns what became of p. An answer that came before the connection ended counts.
func (p *pending) wait(within time.Duration) *reply {
	select {
	case f := <-p.answers:
		return &reply{frame: f, took: f.at.Sub(p.started)}
	case <-time.After(within):
		return &reply{none: true, took: within}
	case <-p.connection.closed:
	}
	select {
	case f := <-p.answers:
		return &reply{frame: f, took: f.at.Sub(p.started)}
	default:
		return &reply{closed: true, took: time.Since(p.started)}
	}
}

// ask sends command and waits, without a line.
func (x *connection) ask(command *pulsarproto.BaseCommand) *reply {
	return x.start(command).wait(answerTimeout)
}

// request sends command and records the answer.
func (r *recording) request(step string, x *connection, command *pulsarproto.BaseCommand) *reply {
	return r.requestWithin(step, x, command, answerTimeout)
}

func (r *recording) requestWithin(step string, x *connection, command *pulsarproto.BaseCommand, within time.Duration) *reply {
	return r.finish(step, x.start(command), within)
}

// finish waits for p and records the answer.
func (r *recording) finish(step string, p *pending, within time.Duration) *reply {
	a := p.wait(within)
	r.say(step, p.description, p, a)
	return a
}

// say records what became of a request.
func (r *recording) say(step, description string, p *pending, a *reply) {
	var text string
	switch {
	case a.closed:
		text = "CONNECTION CLOSED" + seconds(a.took)
	case a.none:
		alive := "connection open, ping answered"
		if !p.connection.ping(2 * time.Second) {
			alive = "ping NOT answered"
		}
		text = fmt.Sprintf("NO ANSWER in %ds (%s)", int(a.took/time.Second), alive)
	default:
		text = r.answer(a.frame.command, p.command) + seconds(a.took)
	}
	r.line(step, description, text)
}

// seconds is a time worth showing: more than a second, rounded.
func seconds(d time.Duration) string {
	if d <= time.Second {
		return ""
	}
	return fmt.Sprintf(" t=%ds", int(d.Round(time.Second)/time.Second))
}

// unsolicited records the answers that nobody asked for.
func (r *recording) unsolicited(step string, x *connection, wait time.Duration) {
	time.Sleep(wait)
	text := "no event"
	if events := x.takeEvents(false); len(events) > 0 {
		text = "events: " + strings.Join(events, " | ")
	}
	if x.isClosed() {
		text += "; CONNECTION CLOSED"
	}
	r.line(step, "unsolicited", text)
}

// malformedWait is how long a connection must stay open to count as open.
const malformedWait = 1500 * time.Millisecond

// malformed writes bytes as they are and records what comes back.
func (r *recording) malformed(step string, x *connection, description string, bytes []byte) {
	started := time.Now()
	x.writeRaw(bytes)
	select {
	case <-x.closed:
	case <-time.After(malformedWait):
	}
	took := time.Since(started)
	text := "no frame"
	if events := x.takeEvents(true); len(events) > 0 {
		text = "frames: " + strings.Join(events, " | ")
	}
	switch {
	case x.isClosed():
		text += "; CONNECTION CLOSED" + seconds(took)
	case x.ping(2 * time.Second):
		text += "; open, ping answered"
	case x.isClosed():
		text += "; CONNECTION CLOSED at the ping"
	default:
		text += "; open, ping NOT answered"
	}
	r.line(step, description, text)
}
