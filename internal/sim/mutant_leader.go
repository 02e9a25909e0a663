package sim

import (
	"context"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
)

// keyKeeper goes on with the leader key that it has, as long as its lease is not known to be gone.
type keyKeeper struct {
	coordinator.Leader
	mu   sync.Mutex
	held map[uint64]coordinator.Term // guarded by mu
}

func keepLeaderKeys(_ *process, leader coordinator.Leader) coordinator.Leader {
	return &keyKeeper{Leader: leader, held: map[uint64]coordinator.Term{}}
}

func (k *keyKeeper) Win(ctx context.Context, tc uint64) (coordinator.Term, error) {
	k.mu.Lock()
	held := k.held[tc]
	k.mu.Unlock()
	if held != nil && !isLost(held) {
		return held, nil
	}
	term, err := k.Leader.Win(ctx, tc)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[tc] = keptTerm{term}
	return k.held[tc], nil
}

func isLost(term coordinator.Term) bool {
	select {
	case <-term.Lost():
		return true
	default:
		return false
	}
}

// keptTerm is never given up.
type keptTerm struct{ coordinator.Term }

func (keptTerm) Resign(context.Context) error { return nil }
