package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// asked is an operation on its way.
type asked struct {
	operation
	// pause is between two attempts. All that are on their way have different ones, so that no two wake at once.
	pause    time.Duration
	answered bool // guarded by world.mu
}

// begin asks one operation, the nth of its round. What has no definite answer and may be repeated is asked again until it has
// one.
func (w *world) begin(op operation, n int) *asked {
	a := &asked{operation: op, pause: repeatPause + time.Duration(n)*time.Millisecond}
	go func() {
		switch op.kind {
		case opNew:
			w.repeat(a.pause, func() bool { return w.open(op) })
		case opAdd:
			w.repeat(a.pause, func() bool { return w.add(op) != history.Unknown })
		case opWrite:
			w.repeat(a.pause, func() bool { return w.write(op) })
		case opEnd:
			w.repeat(a.pause, func() bool { return w.end(op.transaction, op.action) != history.Unknown })
		case opDeadline:
			w.await(op.transaction, time.Second)
		case opNearly:
			w.await(op.transaction, 0)
		}
		w.mu.Lock()
		a.answered = true
		w.mu.Unlock()
		select {
		case w.progress <- struct{}{}:
		default:
		}
	}()
	return a
}

func (w *world) repeat(pause time.Duration, attempt func() bool) {
	for !w.clients.isClosed() && !attempt() {
		time.Sleep(pause)
	}
}

func (w *world) transaction(i int) transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.transactions[i]
}

func (w *world) span(call time.Duration) history.Span {
	return history.Span{Client: "client", Call: call, Return: w.history.Now()}
}

// open asks for a transaction. Transactions whose id nobody has heard end by themselves.
func (w *world) open(op operation) bool {
	ttl := longTTL
	if w.run.Plans[op.transaction].Ending.Way == ByTimeout {
		ttl = shortTTL
	}
	call, began := w.history.Now(), time.Now()
	id, err := ask(w.coordinatorProcess(), func(p *process, answer func(txn.ID, error)) {
		p.group.NewTxn(context.Background(), 0, txn.Owner{}, uint64(ttl.Milliseconds()), "", false, answer)
	})
	if err != nil {
		return false
	}
	w.history.Opened(history.Open{Span: w.span(call), ID: id, TTL: ttl, Kept: retention})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transactions[op.transaction] = transaction{id: id, opened: began, ttl: ttl}
	return true
}

// ask reaches a process and waits for its answer.
func ask[T any](p *process, call func(p *process, answer func(T, error))) (T, error) {
	type result struct {
		value T
		err   error
	}
	answers := make(chan result, 1)
	reach(p, func(answer func(T, error)) { call(p, answer) }, func(value T, err error) { answers <- result{value, err} })
	r := <-answers
	return r.value, r.err
}

func withoutValue(call func(p *process, answer func(error))) func(*process, func(struct{}, error)) {
	return func(p *process, answer func(struct{}, error)) { call(p, func(err error) { answer(struct{}{}, err) }) }
}

func (w *world) add(op operation) history.Answer {
	id, call := w.transaction(op.transaction).id, w.history.Now()
	_, err := ask(w.coordinatorProcess(), withoutValue(func(p *process, answer func(error)) {
		p.group.AddParticipants(context.Background(), id, anybody, []txn.Participant{participants()[op.participant]}, answer)
	}))
	answer := answerOf(err)
	w.used(op, "ADD", call, answer)
	return answer
}

func (w *world) used(op operation, name string, call time.Duration, answer history.Answer) {
	if answer != history.Unknown {
		w.history.Used(history.Use{Span: w.span(call), ID: w.transaction(op.transaction).id, Name: name, Answer: answer})
	}
}

// write sends or acknowledges, once: a client does not know whether a repetition would be the same. It returns false if there
// is nobody to ask yet.
func (w *world) write(op operation) bool {
	id, key, call := w.transaction(op.transaction).id, key(op.transaction, op.participant), w.history.Now()
	answers := make(chan error, 1)
	answered := func(err error) { answers <- err }
	if op.participant == subscription {
		c := w.clients.consumer()
		if c == nil {
			return false
		}
		c.ack(id, w.clients.position(key), w.run.Cumulative, answered)
		w.acked(op, w.wrote(op, call, <-answers))
		return true
	}
	p := w.clients.producer(op.participant)
	if p == nil {
		return false
	}
	p.send(id, key, answered)
	answer := w.wrote(op, call, <-answers)
	w.history.Sent(history.Message{Topic: topics[op.participant], Key: key, Txn: id, InTxn: true, Answer: answer})
	return true
}

func (w *world) acked(op operation, answer history.Answer) {
	for i := range w.run.Plans {
		if w.run.covers(op.transaction, i, subscription) {
			w.history.Acked(history.Ack{
				Topic: topics[subscription], Subscription: subscriptionName, Key: key(i, subscription),
				Txn: w.transaction(op.transaction).id, InTxn: true, Cumulative: w.run.Cumulative, Answer: answer,
			})
		}
	}
}

func (w *world) wrote(op operation, call time.Duration, err error) history.Answer {
	answer := answerOf(err)
	if !errors.Is(err, txn.ErrConflict) { // which tells nothing of the transaction
		w.used(op, []string{"SEND", "SEND", "ACK"}[op.participant], call, answer)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transactions[op.transaction].writes[op.participant] = &answer
	return answer
}

func (w *world) end(transaction int, action txn.Action) history.Answer {
	id, call := w.transaction(transaction).id, w.history.Now()
	_, err := ask(w.coordinatorProcess(), withoutValue(func(p *process, answer func(error)) {
		p.group.EndTxn(context.Background(), id, anybody, action, false, answer)
	}))
	answer := answerOf(err)
	w.mu.Lock()
	w.transactions[transaction].ends = append(w.transactions[transaction].ends, endAnswer{action, answer})
	w.mu.Unlock()
	w.history.Ended(history.End{Span: w.span(call), ID: id, Action: action, Answer: answer})
	return answer
}

// await waits until the deadline of a transaction, and beyond it.
func (w *world) await(transaction int, beyond time.Duration) {
	t := w.transaction(transaction)
	time.Sleep(time.Until(t.opened.Add(t.ttl)) + beyond)
}

// live lists the transactions that have not ended.
func (w *world) live() ([]txn.ID, error) {
	p := w.coordinatorProcess()
	found, err := wait(p, p.list)
	if err != nil {
		return nil, fmt.Errorf("list live transactions: %w", err)
	}
	return found, nil
}
