package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// askTopic loads a topic, has begin run in it, and waits for the answer. A missing topic is not made, except for a partition of a
// partitioned topic. begin answers exactly once; if it began and the topic closes, it answers an error itself.
func askTopic[T any](ctx context.Context, ts *Topics, name topicname.Name, begin func(*Topic, func(T, error))) (T, error) {
	var none T
	for try := 1; ; try++ {
		t, err := ts.load(ctx, name, false)
		if err != nil {
			return none, err
		}
		got, err := runIn(ctx, t, begin)
		if !errors.Is(err, errClosing) || try == attachTries {
			return got, err
		}
	}
}

func runIn[T any](ctx context.Context, t *Topic, begin func(*Topic, func(T, error))) (T, error) {
	type result struct {
		value T
		err   error
	}
	answers := make(chan result, 1)
	answer := func(value T, err error) { answers <- result{value, err} }
	t.ask(func(alive bool) {
		if !alive {
			var none T
			answer(none, errClosing)
			return
		}
		begin(t, answer)
	})
	select {
	case r := <-answers:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: %w", t.fullName, context.Cause(ctx))
	}
}

// askSubscription is askTopic for a subscription of the topic.
// Errors: ErrSubscriptionNotFound.
func askSubscription[T any](ctx context.Context, ts *Topics, name topicname.Name, named string, begin func(*subscription, func(T, error))) (T, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(T, error)) {
		s := t.subscriptions[named]
		if s == nil || s.gone {
			var none T
			answer(none, fmt.Errorf("%w: %s", ErrSubscriptionNotFound, named))
			return
		}
		begin(s, answer)
	})
}

// onlyError turns the answer of a call without a value into that of an item.
func onlyError(answer func(struct{}, error)) func(error) {
	return func(err error) { answer(struct{}{}, err) }
}
