package topic

// item is one command that waits for its turn to be written. Items are prepared in the order in which they came, and done in
// that order too.
type item interface {
	// prepare adds what the command writes to g, or makes its answer. It reports false, and has changed nothing, if the
	// command must wait for the next group; in an empty group it may do so only to wait for something else.
	prepare(g *group) bool
	// undo takes back what prepare changed in memory, as g was not applied. prepare is called again.
	undo()
	// done performs the command's effects and answers: its group is durable.
	done(g *group)
	// fail answers that nothing is known.
	fail(err error)
}

// queue is the commands of a topic that are in no group yet.
type queue struct {
	items []item
	head  int
}

func (q *queue) empty() bool { return q.head == len(q.items) }

func (q *queue) push(it item) { q.items = append(q.items, it) }

func (q *queue) peek() item { return q.items[q.head] }

func (q *queue) pop() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// pushFront puts items before all others, in their order.
func (q *queue) pushFront(items []item) {
	if len(items) == 0 {
		return
	}
	rest := q.items[q.head:]
	all := make([]item, 0, len(items)+len(rest))
	q.items, q.head = append(append(all, items...), rest...), 0
}

// take removes every item for which drop is true and returns them in order.
func (q *queue) take(drop func(item) bool) []item {
	var taken []item
	keep := q.items[:0]
	for _, it := range q.items[q.head:] {
		if drop(it) {
			taken = append(taken, it)
		} else {
			keep = append(keep, it)
		}
	}
	clear(q.items[len(keep):])
	q.items, q.head = keep, 0
	return taken
}

func (q *queue) fail(err error) {
	for !q.empty() {
		it := q.peek()
		q.pop()
		it.fail(err)
	}
}
