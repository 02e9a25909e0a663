package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// question is what the log says of a transaction when somebody asks about it: no answer may be older.
type question struct {
	oracle  *oracle
	process *process
	id      txn.ID
	durable
	found bool
}

// asks notes that a question arrives at a process.
func (o *oracle) asks(p *process, id txn.ID) *question {
	q := &question{oracle: o, process: p, id: id}
	q.durable, q.found = o.of(id)
	return q
}

// answeredOpen checks an answer that says that the transaction is open.
func (q *question) answeredOpen(what string) {
	if q.decided && !q.process.isDead() {
		q.oracle.world.fail("an answer is older than the question",
			fmt.Sprintf("%s says by %s that %v is open, which was to %s before", q.process.name, what, q.id, q.action))
	}
}

// answered checks an answer that may say that nobody knows the transaction.
func (q *question) answered(err error) {
	var notFound *txn.NotFoundError
	if !errors.As(err, &notFound) || !q.found || q.process.isDead() {
		return
	}
	if now, _ := q.oracle.of(q.id); !now.ended || q.oracle.world.mix.kept > 0 { // else it may have been forgotten meanwhile
		q.oracle.world.fail("an answer is older than the question",
			fmt.Sprintf("%s does not find %v, which was in the log before: %+v", q.process.name, q.id, q.durable))
	}
}

// overdue is for how long a transaction may be open behind its deadline, when nothing fails any more: somebody must have won the
// term and loaded the log.
const overdue = 10 * time.Second

// awaitDeadlines waits until no transaction is open: nobody asks for their ends, and their deadlines pass.
func (w *world) awaitDeadlines() {
	if !w.mix.waits {
		return
	}
	c := newClient(w, -2)
	c.sleep(quiet) // what was lost before is given up by then
	healed := time.Now()
	for c.sleep(500 * time.Millisecond) {
		open, late := w.oracle.undecided(healed)
		if late != "" {
			w.fail("a transaction is open behind its deadline", late)
		}
		if open == 0 || late != "" {
			return
		}
	}
}

// undecided counts the transactions without a decision, and describes one whose deadline has passed long ago.
func (o *oracle) undecided(healed time.Time) (open int, late string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, d := range o.known {
		if d.decided {
			continue
		}
		open++
		until := d.deadline
		if until.Before(healed) {
			until = healed
		}
		if text := id.String(); time.Since(until) > overdue && (late == "" || text < late) {
			late = text
		}
	}
	return open, late
}
