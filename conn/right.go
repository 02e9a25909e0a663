package conn

import (
	"context"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// right asks whether a producer or consumer may be there. A nil right is always given.
type right func(ctx context.Context) error

func (r right) check(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r(ctx)
}

// producerRight is what a producer needs. One that brings a subscription along needs the right to that, too.
//
// Source: ServerCnx.handleProducer, initial_subscription_name.
func (s *session) producerRight(name topicname.Name, subscription string) right {
	if s.options.Authorizer == nil {
		return nil
	}
	return func(ctx context.Context) error {
		err := s.options.Authorizer.Produce(ctx, s.caller, name)
		if err == nil && subscription != "" {
			err = s.options.Authorizer.Consume(ctx, s.caller, name, subscription)
		}
		return err
	}
}

// consumerRight is what a consumer needs.
func (s *session) consumerRight(name topicname.Name, subscription string) right {
	if s.options.Authorizer == nil {
		return nil
	}
	return func(ctx context.Context) error {
		return s.options.Authorizer.Consume(ctx, s.caller, name, subscription)
	}
}

// CheckRights asks again for every producer and consumer, those being attached included, and disconnects who has lost his
// right. It is to be called after rights have changed. Where rights cannot be read, all stays as it is.
//
// Source: AbstractTopic.onPoliciesUpdate; Producer.checkPermissionsAsync, Consumer.checkPermissionsAsync.
func (s *Server) CheckRights(ctx context.Context) {
	s.mu.Lock()
	sessions := slices.Collect(maps.Keys(s.sessions))
	s.mu.Unlock()
	for _, session := range sessions {
		session.checkRights(ctx)
	}
}

func (s *session) checkRights(ctx context.Context) {
	s.mu.Lock()
	producers, consumers := slices.Collect(maps.Values(s.producers)), slices.Collect(maps.Values(s.consumers))
	s.mu.Unlock()
	for _, p := range producers {
		if s.hasLost(ctx, p.right) {
			topic := p.disconnect()
			p.cancel() // of one that waits for others to go
			if topic != nil {
				topic.Close()
			}
		}
	}
	for _, c := range consumers {
		if s.hasLost(ctx, c.right) {
			topic := c.disconnect()
			c.cancel() // of one that waits for others to go
			if topic != nil {
				topic.Close()
			}
		}
	}
}

func (s *session) hasLost(ctx context.Context, right right) bool {
	err := right.check(ctx)
	return err != nil && errorCode(err) == pulsarproto.ServerError_AuthorizationError
}
