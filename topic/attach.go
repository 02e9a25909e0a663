package topic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errClosing: the topic closed before the command's turn came; nothing of it was done, and the topic can be loaded again.
var errClosing = fmt.Errorf("%w: the topic is closing", txn.ErrNotReady)

// attachTries bounds how often a topic is loaded again because it closed under a producer or consumer.
const attachTries = 3

// attach loads a topic, has begin run in it, and waits for the answer. If ctx ends first, a late answer is closed.
func attach[T interface{ Close() }](ctx context.Context, ts *Topics, name topicname.Name, create bool, begin func(*Topic, func(T, error))) (T, error) {
	var none T
	for try := 1; ; try++ {
		t, err := ts.load(ctx, name, create)
		if err != nil {
			return none, err
		}
		attached, err := attachTo(ctx, t, begin)
		if err == nil {
			return attached, nil
		}
		if !errors.Is(err, errClosing) || try == attachTries {
			return none, fmt.Errorf("attach to %s: %w", name, err)
		}
	}
}

func attachTo[T interface{ Close() }](ctx context.Context, t *Topic, begin func(*Topic, func(T, error))) (T, error) {
	type result struct {
		attached T
		err      error
	}
	var none T
	answers := make(chan result, 1)
	answer := func(attached T, err error) { answers <- result{attached, err} }
	t.ask(func(alive bool) {
		if !alive {
			answer(none, errClosing)
			return
		}
		if t.leaving() {
			answer(none, errFencedTopic)
			return
		}
		t.idleSince = time.Time{}
		begin(t, answer)
	})
	select {
	case r := <-answers:
		return r.attached, r.err
	case <-ctx.Done():
		go func() {
			if r := <-answers; r.err == nil {
				r.attached.Close()
			}
		}()
		return none, context.Cause(ctx)
	}
}
