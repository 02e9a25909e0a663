package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// oracle watches from above: it reads every log entry as it becomes durable, and holds against it what coordinators answer and
// what participants are told, at the moment in which that happens.
type oracle struct {
	world   *world
	decoder txnlog.Decoder
	logs    string // prefix of the keys of coordinators

	mu    sync.Mutex
	known map[txn.ID]*durable // guarded by mu
}

// durable is what the log says of a transaction.
type durable struct {
	participants map[txn.Participant]bool
	decided      bool
	action       txn.Action
	ended        bool // the record that is the outcome exists
	deadline     time.Time
}

func newOracle(w *world) *oracle {
	return &oracle{world: w, logs: strings.TrimSuffix(w.space.TC(0), "0000000000000000/"), known: map[txn.ID]*durable{}}
}

// applied reads what a request that was applied wrote to a log.
func (o *oracle) applied(p *process, r *etcdmodel.Request, err error) {
	if err != nil || r.Kind != etcdmodel.Txn && r.Kind != etcdmodel.Put {
		return
	}
	_, then, _ := r.Ops()
	for _, op := range then {
		if gone := op.GetRequestDeleteRange(); gone != nil && r.Succeeded() {
			if _, isLog := o.logOf(string(gone.Key)); isLog {
				o.world.counted("log cleaned")
			}
		}
		put := op.GetRequestPut()
		if put == nil {
			continue
		}
		key := string(put.Key)
		tc, isLog := o.logOf(key)
		if !isLog || !r.Succeeded() {
			continue
		}
		records, err := o.decoder.Decode(key, put.Value)
		if err != nil {
			o.world.fail("a log entry cannot be read", err.Error())
			return
		}
		o.mu.Lock()
		for i := range records {
			o.record(p, tc, &records[i])
		}
		o.mu.Unlock()
	}
}

// logOf tells the coordinator of a log key.
func (o *oracle) logOf(key string) (tc uint64, isLog bool) {
	rest, found := strings.CutPrefix(key, o.logs)
	if !found {
		return 0, false
	}
	number, rest, _ := strings.Cut(rest, "/")
	if !strings.HasPrefix(rest, "log/") {
		return 0, false
	}
	tc, err := strconv.ParseUint(number, 16, 64)
	return tc, err == nil
}

// record takes one record. The caller holds mu.
func (o *oracle) record(p *process, tc uint64, r *txn.Record) {
	id := txn.ID{Most: tc, Least: r.Least}
	d := o.known[id]
	switch r.Op {
	case txn.OpNew:
		if d != nil {
			o.world.fail("an id is given twice", fmt.Sprintf("%v, by %s", id, p.name))
		}
		o.known[id] = &durable{participants: map[txn.Participant]bool{}, deadline: latestDeadline(r)}
	case txn.OpAddPartition, txn.OpAddSubscription:
		if d == nil || d.decided {
			o.world.fail("a participant is added to a transaction that is not open", fmt.Sprintf("%v, by %s", id, p.name))
			return
		}
		for _, added := range r.Participants {
			d.participants[added] = true
		}
	case txn.OpUpdate, txn.OpOutcome, txn.OpSnapshot:
		o.status(p, id, d, r)
	}
}

// latestDeadline is that of a NEW by its clock, or by the time that has passed: a clock that is set moves no timer.
func latestDeadline(r *txn.Record) time.Time {
	byClock, passed := time.UnixMilli(r.StartTime), time.Now()
	if passed.After(byClock) {
		byClock = passed
	}
	return byClock.Add(time.Duration(r.TimeoutMillis) * time.Millisecond)
}

// status takes a record that says how a transaction stands.
func (o *oracle) status(p *process, id txn.ID, d *durable, r *txn.Record) {
	if d == nil {
		o.world.fail("the log decides a transaction that it does not know", fmt.Sprintf("%v %s, by %s", id, r.Status, p.name))
		return
	}
	action, decided := r.Status.Decided()
	if d.decided && (!decided || action != d.action) {
		o.world.fail("the log changes its mind", fmt.Sprintf("%v was to %s, then is %s by %s", id, d.action, r.Status, p.name))
		return
	}
	if decided {
		d.decided, d.action = true, action
	}
	if r.Op == txn.OpUpdate && r.Expected == txn.Open && r.Status == txn.Committed {
		o.settled(p, id, d)
	}
	d.ended = d.ended || r.Status.Final()
}

// settled notes that participants have applied a commit with its decision, in the same request.
func (o *oracle) settled(p *process, id txn.ID, d *durable) {
	w, now := o.world, o.world.history.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for participant := range d.participants {
		w.decisions = append(w.decisions, &history.Decision{
			Span: history.Span{Client: p.name, Call: now, Return: now},
			ID:   id, Participant: participant.String(), Action: txn.Commit, Answer: history.Done,
		})
	}
}

// of returns a copy of what the log says of a transaction.
func (o *oracle) of(id txn.ID) (durable, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.known[id]
	if d == nil {
		return durable{}, false
	}
	return *d, true
}

func (o *oracle) registered(id txn.ID, participant txn.Participant) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.known[id]
	return d != nil && d.participants[participant]
}

// told checks that a participant which is told of a decision, by p or at p, is told what the log says, however late.
func (o *oracle) told(p *process, id txn.ID, participant txn.Participant, action txn.Action) {
	if p.isDead() {
		return
	}
	if d, found := o.of(id); !found || !d.decided || d.action != action {
		o.world.fail("a participant is called without a durable decision", fmt.Sprintf("%s of %v on %s, %s; the log says %+v", action, id, participant, p.name, d))
	}
}

// answeredNew checks that an id which is answered is in the log.
func (o *oracle) answeredNew(p *process, id txn.ID, err error) {
	if _, found := o.of(id); err == nil && !found && !p.isDead() {
		o.world.fail("an id is answered that is not durable", fmt.Sprintf("%v, by %s", id, p.name))
	}
}

// answeredAdd checks that a participant whose registration is answered is in the log.
func (o *oracle) answeredAdd(p *process, id txn.ID, participant txn.Participant, err error) {
	if err == nil && !p.isDead() && !o.registered(id, participant) {
		o.world.fail("a registration is answered that is not durable", fmt.Sprintf("%s with %v, by %s", participant, id, p.name))
	}
}

// answeredEnd checks a definite answer to END_TXN: the outcome is in the log, and for success no participant has anything left
// to apply.
func (o *oracle) answeredEnd(p *process, id txn.ID, action txn.Action, err error) {
	if p.isDead() {
		return
	}
	d, found := o.of(id)
	var contrary *txn.StatusError
	switch {
	case err == nil && (!found || !d.ended || d.action != action):
		o.world.fail("success is answered without a durable outcome", fmt.Sprintf("%s of %v by %s, the log says %+v", action, id, p.name, d))
	case err == nil:
		if left := o.world.unresolved(id); left != "" {
			o.world.fail("success is answered before every participant is done", fmt.Sprintf("%s of %v by %s: there is %s", action, id, p.name, left))
		}
	case errors.As(err, &contrary) && (!found || !d.decided || d.action == action):
		o.world.fail("the contrary is answered without a durable decision", fmt.Sprintf("%v to %s of %v by %s, the log says %+v", err, action, id, p.name, d))
	}
}

// unresolved is a key of a topic that says that a transaction is still to be ended there; empty: there is none.
func (w *world) unresolved(id txn.ID) string {
	suffix := fmt.Sprintf("/%016x%016x", id.Most, id.Least)
	return w.firstUnresolved(func(key string) bool { return strings.Contains(key, "/m/") && strings.Contains(key, suffix) })
}

// firstUnresolved is the first of the keys of topics for which is is true; what a committed transaction still has pending is as
// good as acknowledged.
func (w *world) firstUnresolved(is func(key string) bool) string {
	contents := w.store.Contents(w.space.Topics() + "data/")
	committed := map[string]bool{}
	for _, kv := range contents {
		if pending, found := strings.CutSuffix(kv.Key, "/committed"); found {
			committed[pending] = true
		}
	}
	for _, kv := range contents {
		if at := strings.LastIndexByte(kv.Key, '/'); is(kv.Key) && !committed[kv.Key[:at]] && !w.isDoomed(kv.Key) {
			return kv.Key
		}
	}
	return ""
}
