// Package txnlog turns the records of a coordinator's group commit into the bytes of one log value and back. The logs that
// store the values are in the packages below this one.
//
// A value is
//
//	byte 0      version of this layout, 1
//	bytes 1-4   CRC-32C (Castagnoli) of all bytes behind, little endian
//	bytes 5-    a protobuf message, BatchedTransactionMetadataEntry
//
// BatchedTransactionMetadataEntry has Pulsar's field 1 and one of ours:
//
//	 1  transaction_logs   repeated TransactionMetadataEntry
//	32  base_time          sint64, ms since the epoch: the time of the first record; absent if 0 or without records
//
// TransactionMetadataEntry has Pulsar's numbers where a field is Pulsar's, and ours from 32 on:
//
//	 1  metadata_op        enum; absent: NEW
//	 2  txnid_least_bits   uint64
//	 4  expected_status    enum; absent: OPEN
//	 5  new_status         enum; absent: OPEN
//	 6  partitions         repeated string
//	 7  subscriptions      repeated Subscription { 1 topic, 2 subscription }
//	 8  timeout_ms         uint64
//	12  owner              string; absent: nobody, which an empty one is not
//	13  clientName         string; absent: unnamed
//	32  place              uint64
//	33  timed_out          bool
//	34  time               sint64, ms behind base_time
//	35  start              sint64, ms of start_time behind the record's time
//	36  who                string
//	37  done_partitions    repeated string
//	38  done_subscriptions repeated Subscription
//	39  change             uint64
//
// A number that is absent is 0. Pulsar's txnid_most_bits (3) is the coordinator, which the key names; start_time (9) and
// last_modification_time (10) are the differences 35 and 34; max_local_txn_id (11) has a key of its own. Which fields an op
// may have is said at txn.Record; a value with any other field is corrupt. partitions and subscriptions keep the order that
// the participants had among each other.
//
// Source of names and numbers: PulsarTransactionMetadata.proto; PIP-255 for clientName.
//
// Nothing is guessed: a value that is too short, of another version, with a wrong checksum, or with content that is not
// exactly as above is a *txn.CorruptError.
package txnlog
