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

// admitData refuses messages and acknowledgements while the store is short of space.
func (s *Server) admitData() error {
	if space := s.store.Space(); space != etcdstore.Normal {
		return fmt.Errorf("%w: the store is short of space (%s); messages are refused until there is more", txn.ErrNotReady, space)
	}
	return nil
}
