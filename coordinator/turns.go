package coordinator

import "github.com/pulsar-tc/pulsar-tc/txn"

// turns is a queue of drives in which transactions take turns, so that one with thousands of participants holds up no other.
// The zero turns is empty.
type turns struct {
	lines map[txn.ID]*line
	next  []*line // whose turn it is, first to last
}

// line is the drives of one transaction that wait, in order.
type line struct {
	id     txn.ID
	drives []*drive
}

func (q *turns) push(d *drive) {
	id := d.decision.ID()
	l := q.lines[id]
	if l == nil {
		if q.lines == nil {
			q.lines = map[txn.ID]*line{}
		}
		l = &line{id: id}
		q.lines[id] = l
		q.next = append(q.next, l)
	}
	l.drives = append(l.drives, d)
}

// pop returns the next drive, nil if none waits.
func (q *turns) pop() *drive {
	if len(q.next) == 0 {
		return nil
	}
	l := q.next[0]
	q.next[0] = nil
	q.next = q.next[1:]
	d := l.drives[0]
	l.drives[0] = nil
	l.drives = l.drives[1:]
	if len(l.drives) > 0 {
		q.next = append(q.next, l)
	} else {
		delete(q.lines, l.id)
	}
	return d
}
