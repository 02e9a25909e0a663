package topic

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
)

// keyShared is what the consumers of a Key_Shared subscription agreed on when the first of them came, and who has which keys.
type keyShared struct {
	mode       pulsarproto.KeySharedMode
	outOfOrder bool // a key may move while messages of it are unacknowledged
	selector   stickykey.Selector
	members    map[stickykey.Member]*consumer
	next       stickykey.Member
}

func (s *subscription) keyShared() bool { return s.kind == pulsarproto.CommandSubscribe_Key_Shared }

// ordersKeys reports whether keys keep their order when they move.
func (s *subscription) ordersKeys() bool { return s.keyShared() && !s.sticky.outOfOrder }

// newKeyShared returns what the first consumer wants.
// Source: PersistentStickyKeyDispatcherMultipleConsumers; broker.conf subscriptionKeySharedUseConsistentHashing.
func (o *Options) newKeyShared(meta *pulsarproto.KeySharedMeta) *keyShared {
	k := &keyShared{
		mode: meta.GetKeySharedMode(), outOfOrder: meta.GetAllowOutOfOrderDelivery(),
		members: make(map[stickykey.Member]*consumer),
	}
	switch {
	case k.mode == pulsarproto.KeySharedMode_STICKY:
		k.selector = &stickykey.Fixed{}
	case o.KeySharedRingPoints > 0:
		k.selector = stickykey.NewRing(o.KeySharedRingPoints)
	default:
		k.selector = &stickykey.AutoSplit{}
	}
	return k
}

// agrees reports whether a consumer wants what those before it want.
func (k *keyShared) agrees(meta *pulsarproto.KeySharedMeta) bool {
	return k.mode == meta.GetKeySharedMode() && k.outOfOrder == meta.GetAllowOutOfOrderDelivery()
}

// add takes a consumer in. Errors: ConsumerAssignError, if the ranges that it asks for are not possible.
func (k *keyShared) add(c *consumer, meta *pulsarproto.KeySharedMeta) error {
	var ranges []stickykey.Range
	for _, r := range meta.GetHashRanges() {
		ranges = append(ranges, stickykey.Range{Start: r.GetStart(), End: r.GetEnd()})
	}
	k.next++
	if err := k.selector.Add(k.next, c.name, ranges); err != nil {
		return cnx.Refuse(pulsarproto.ServerError_ConsumerAssignError, fmt.Sprintf("consumer %s: %v", c.name, err))
	}
	c.member = k.next
	k.members[c.member] = c
	return nil
}

func (k *keyShared) remove(c *consumer) {
	k.selector.Remove(c.member)
	delete(k.members, c.member)
}

func (k *keyShared) owner(key waitKey) *consumer {
	m, _ := k.selector.Select(int(key))
	return k.members[m]
}

// stickyKey is the hash of the key, which is never 0.
func stickyKey(f *pulsarproto.DeliveryFields) waitKey { return waitKey(stickykey.Hash(f.StickyKey())) }

// blocked reports whether c must not be given messages of key yet, because others have messages of it.
func (s *subscription) blocked(key waitKey, c *consumer) bool {
	return s.ordersKeys() && s.holders.blocks(key, c)
}

// letGo notes that c has p of key no more. What a transaction holds of it goes on holding the key.
func (s *subscription) letGo(c *consumer, p ledger.Position, key waitKey) {
	if key == 0 {
		return
	}
	if whole, indexes := s.pending.Hidden(p); (whole || !indexes.Empty()) && s.holders.pend(p, key, c) {
		return
	}
	s.holders.release(key)
	s.offerKey(key)
}

// freePending takes back the keys of what a transaction held that has ended.
func (s *subscription) freePending(held pendingack.Held) {
	for _, hold := range held.Individual {
		s.freeKey(hold.Position)
	}
	if held.Cumulative == nil {
		return
	}
	for p := range s.holders.pending {
		if !held.Cumulative.Position.Before(p) {
			s.freeKey(p)
		}
	}
}

// freeKey takes back the key of p if no transaction holds anything of p any more.
func (s *subscription) freeKey(p ledger.Position) {
	if whole, indexes := s.pending.Hidden(p); whole || !indexes.Empty() {
		return
	}
	if key, known := s.holders.ended(p); known {
		s.offerKey(key)
	}
}
