package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// authorize runs then if check finds nothing against it, else failed with the refusal. Where rights are checked both run in a
// goroutine of their own, because the rights may have to be read.
func (r request) authorize(check func() error, failed func(error), then func()) {
	if r.options.Authorizer == nil {
		then()
		return
	}
	r.requests.Go(func() {
		if err := check(); err != nil {
			failed(err)
			return
		}
		then()
	})
}

// mayLookup reports what is against the caller's finding a topic. It may read the store.
func (s *session) mayLookup(name topicname.Name) error {
	if s.options.Authorizer == nil {
		return nil
	}
	return s.options.Authorizer.Lookup(s.ctx, s.caller, name)
}

func (s *session) mayProduce(ctx context.Context, name topicname.Name) error {
	if s.options.Authorizer == nil {
		return nil
	}
	return s.options.Authorizer.Produce(ctx, s.caller, name)
}

func (s *session) mayConsume(ctx context.Context, name topicname.Name, subscription string) error {
	if s.options.Authorizer == nil {
		return nil
	}
	return s.options.Authorizer.Consume(ctx, s.caller, name, subscription)
}

func (s *session) mayListTopics(namespace string) error {
	if s.options.Authorizer == nil {
		return nil
	}
	return s.options.Authorizer.ListTopics(s.ctx, s.caller, namespace)
}

// mayTakePart reports what is against a transaction of the caller's on all of participants.
func (s *session) mayTakePart(participants []txn.Participant) error {
	for _, participant := range participants {
		name, err := topicname.Parse(participant.Topic)
		if err != nil {
			return err
		}
		if participant.Kind == txn.Partition {
			err = s.mayProduce(s.ctx, name)
		} else {
			err = s.mayConsume(s.ctx, name, participant.Subscription)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayEndOnParticipants reports what is against END_TXN_ON_*, which coordinators alone send: those of other instances, and where
// rights are checked super users. The answer to others is that for a transaction which does not exist.
//
// Source: ServerCnx.handleEndTxnOnPartition, verifyTxnOwnership.
func (s *session) mayEndOnParticipants(id txn.ID) error {
	if s.options.Authorizer == nil || s.caller.Super || s.instance {
		return nil
	}
	return &txn.NotFoundError{ID: id}
}
