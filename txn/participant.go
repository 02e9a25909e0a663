package txn

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Participant is one place that a transaction wrote to: a topic (partition), or a subscription whose messages it
// acknowledged. The zero Subscription with Kind Partition is a topic. Participants are comparable and usable as map keys.
type Participant struct {
	Topic        string // full name, for example persistent://tenant/namespace/topic-partition-0
	Subscription string // name of the subscription; meaningful only for Kind AckedSubscription
	Kind         Kind
}

// Kind tells produced partitions from acknowledged subscriptions.
type Kind uint8

// The two kinds of participants.
const (
	Partition         Kind = 0 // ADD_PARTITION_TO_TXN
	AckedSubscription Kind = 1 // ADD_SUBSCRIPTION_TO_TXN
)

// String names the participant for people: the topic, or "topic subscription".
func (p Participant) String() string {
	if p.Kind == AckedSubscription {
		return p.Topic + " " + p.Subscription
	}
	return p.Topic
}

// Size is the number of name bytes of p, the unit of the limit on one transaction's participants.
func (p Participant) Size() int { return len(p.Topic) + len(p.Subscription) }

// Compare orders participants the way a coordinator drives them: acknowledged subscriptions first, then partitions,
// each by name. Source: TransactionMetadataStoreService.endTxnInTransactionBuffer.
func (p Participant) Compare(q Participant) int {
	return cmp.Or(
		cmp.Compare(q.Kind, p.Kind),
		cmp.Compare(p.Topic, q.Topic),
		cmp.Compare(p.Subscription, q.Subscription),
	)
}

// Hash is the text under which p's open key is stored: 32 hex digits, the first 128 bits of SHA-256 over the kind and the
// length-prefixed names.
func (p Participant) Hash() string {
	h := sha256.New()
	var head [9]byte
	head[0] = byte(p.Kind)
	binary.BigEndian.PutUint64(head[1:], uint64(len(p.Topic)))
	h.Write(head[:])
	h.Write([]byte(p.Topic))
	if p.Kind == AckedSubscription {
		binary.BigEndian.PutUint64(head[1:], uint64(len(p.Subscription)))
		h.Write(head[1:])
		h.Write([]byte(p.Subscription))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
