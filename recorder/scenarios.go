package recorder

// Scenario is a sequence of requests whose answers are recorded.
type Scenario struct {
	Name string // as in the table
	What string
	play func(*recording)
}

// Scenarios are all of them. Each takes a fresh server.
var Scenarios = []Scenario{
	{"A", "first contact with the coordinator", playConnect},
	{"B", "NEW_TXN", playNewTxn},
	{"C", "ADD_PARTITION_TO_TXN", playAddPartitions},
	{"D", "ADD_SUBSCRIPTION_TO_TXN", playAddSubscriptions},
	{"E", "END_TXN", playEndTxn},
	{"E2", "END_TXN with odd participants", playEndTxnOddParticipants},
	{"E3", "END_TXN overlapping", playEndTxnOverlap},
	{"F", "timeout", playTimeout},
	{"G1", "SEND with a transaction id", playSend},
	{"G2", "END_TXN_ON_PARTITION", playEndOnPartition},
	{"G3", "low water mark and reload", playLowWaterMark},
	{"G4", "transactional ACK", playAck},
	{"G5", "END_TXN_ON_SUBSCRIPTION", playEndOnSubscription},
	{"G6", "ACK of single messages of a batch", playBatchIndexAck},
	{"H", "last message id, seek, unsubscribe, close", playConsumer},
	{"I", "system topics", playSystemTopics},
	{"J", "malformed input", playMalformed},
	{"K", "admin REST", playAdmin},
	{"M", "coordinator unloaded", playUnload},
	{"Z", "overflowing ttl", playOverflow},
}
