package coordinator

import "github.com/pulsar-tc/pulsar-tc/txn"

// turns is a queue of drives in which transactions take turns, so that one with thousands of participants holds up no other. No topic
// has more than perTopic of the drives that were popped and are not over: what one more would be is held back, in a line of the
// topic that takes turns with the transactions as soon as there is room. The zero turns with a perTopic is empty.
type turns struct {
	perTopic int
	lines    map[txn.ID]*line
	held     map[string]*line
	busy     map[string]int // by topic: drives that are not over
	next     []*line        // whose turn it is, first to last
}

// line is the drives of one transaction, or those of one topic that are held back, in order.
type line struct {
	held   bool
	id     txn.ID // if not held
	topic  string // if held
	drives []*drive
	queued bool // in turns.next
}

func (d *drive) topic() string { return d.decision.Participant().Topic }

func (q *turns) push(d *drive) {
	if l := q.held[d.topic()]; l != nil {
		l.drives = append(l.drives, d)
		return
	}
	id := d.decision.ID()
	l := q.lines[id]
	if l == nil {
		if q.lines == nil {
			q.lines = map[txn.ID]*line{}
		}
		l = &line{id: id}
		q.lines[id] = l
	}
	l.drives = append(l.drives, d)
	q.queue(l)
}

func (q *turns) queue(l *line) {
	if !l.queued {
		l.queued = true
		q.next = append(q.next, l)
	}
}

// pop returns the next drive that its topic has room for, nil if none waits. Call over when it is.
func (q *turns) pop() *drive {
	for len(q.next) > 0 {
		l := q.next[0]
		q.next[0] = nil
		q.next = q.next[1:]
		l.queued = false
		d := l.drives[0]
		l.drives[0] = nil
		l.drives = l.drives[1:]
		topic := d.topic()
		hold := !l.held && !q.admits(topic)
		if hold {
			q.hold(d)
		} else {
			q.begin(topic)
		}
		switch {
		case len(l.drives) == 0:
			q.forget(l)
		case !l.held || q.busy[topic] < q.perTopic:
			q.queue(l)
		}
		if !hold {
			return d
		}
	}
	return nil
}

// admits reports whether the topic has room, and no drive of it is held back.
func (q *turns) admits(topic string) bool { return q.busy[topic] < q.perTopic && q.held[topic] == nil }

func (q *turns) begin(topic string) {
	if q.busy == nil {
		q.busy = map[string]int{}
	}
	q.busy[topic]++
}

// over makes room for another drive of the topic.
func (q *turns) over(topic string) {
	if q.busy[topic]--; q.busy[topic] == 0 {
		delete(q.busy, topic)
	}
	if l := q.held[topic]; l != nil {
		q.queue(l)
	}
}

func (q *turns) hold(d *drive) {
	topic := d.topic()
	if q.held == nil {
		q.held = map[string]*line{}
	}
	l := q.held[topic]
	if l == nil {
		l = &line{held: true, topic: topic}
		q.held[topic] = l
	}
	l.drives = append(l.drives, d)
}

func (q *turns) forget(l *line) {
	if l.held {
		delete(q.held, l.topic)
	} else {
		delete(q.lines, l.id)
	}
}
