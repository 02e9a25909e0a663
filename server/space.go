package server

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// watchSpace passes what the store refuses on to the coordinators, as soon as it changes.
func (s *Server) watchSpace(ctx context.Context) {
	for {
		s.group.SetSpace(levelOf(s.store.Space()))
		select {
		case <-ctx.Done():
			return
		case <-s.store.SpaceChanged():
		}
	}
}

func levelOf(space etcdstore.Space) fsm.SpaceLevel {
	switch space {
	case etcdstore.RefuseNew:
		return fsm.SpaceRefuseNew
	case etcdstore.RefuseEnd:
		return fsm.SpaceRefuseEnd
	}
	return fsm.SpaceNormal
}

// admitMessage refuses messages while the store is short of space.
func (s *Server) admitMessage() error { return s.admit(etcdstore.RefuseData, "messages") }

// admitAck refuses acknowledgements only where new transactions are refused as well: they let messages be deleted.
func (s *Server) admitAck() error { return s.admit(etcdstore.RefuseNew, "acknowledgements") }

func (s *Server) admit(from etcdstore.Space, what string) error {
	if space := s.store.Space(); space >= from {
		return fmt.Errorf("%w: the store is short of space (%s); %s are refused until there is more", txn.ErrNotReady, space, what)
	}
	return nil
}
