package keyspace

import (
	"net/url"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Topics is the prefix of everything of the embedded topics:
//
//	topics/tenant/<tenant>                              a tenant
//	topics/namespace/<tenant>/<namespace>               a namespace
//	topics/cluster/<cluster>                            a cluster
//	topics/policies/<domain>/<tenant>/<namespace>/<topic>     policies of one topic
//	topics/partitioned/<domain>/<tenant>/<namespace>/<topic>  a partitioned topic
//	topics/name/<domain>/<tenant>/<namespace>/<topic>   a topic or a partition; its create revision is the topic's id
//	topics/deleted/<id>                                 a deleted topic some of whose data is still there
//	topics/creator/<instance>                           what an instance's creations compare; without an instance: those of the one process
//	topics/data/<id>/...                                see Topic
//
// Names of topics are path-escaped, so they cannot leave their place.
func (s Space) Topics() string { return s.root + "topics/" }

// TenantPrefix is the prefix of all tenants.
func (s Space) TenantPrefix() string { return s.Topics() + "tenant/" }

// Tenant is the key of a tenant.
func (s Space) Tenant(tenant string) string { return s.TenantPrefix() + url.PathEscape(tenant) }

// AllNamespacesPrefix is the prefix of the namespaces of all tenants.
func (s Space) AllNamespacesPrefix() string { return s.Topics() + "namespace/" }

// NamespacePrefix is the prefix of the namespaces of a tenant.
func (s Space) NamespacePrefix(tenant string) string {
	return s.AllNamespacesPrefix() + url.PathEscape(tenant) + "/"
}

// Namespace is the key of a namespace. namespace is its local part.
func (s Space) Namespace(tenant, namespace string) string {
	return s.NamespacePrefix(tenant) + url.PathEscape(namespace)
}

// ClusterPrefix is the prefix of all clusters.
func (s Space) ClusterPrefix() string { return s.Topics() + "cluster/" }

// Cluster is the key of a cluster.
func (s Space) Cluster(cluster string) string { return s.ClusterPrefix() + url.PathEscape(cluster) }

// PoliciesPrefix is the prefix of the policies of all topics.
func (s Space) PoliciesPrefix() string { return s.Topics() + "policies/" }

// NamespacePoliciesPrefix is the prefix of the policies of the topics of a namespace.
func (s Space) NamespacePoliciesPrefix(domain, tenant, namespace string) string {
	return s.PoliciesPrefix() + namesPath(domain, tenant, namespace)
}

// Policies is the key of the policies of a topic.
func (s Space) Policies(domain, tenant, namespace, topic string) string {
	return s.NamespacePoliciesPrefix(domain, tenant, namespace) + url.PathEscape(topic)
}

// PartitionedPrefix is the prefix of the partitioned topics of a namespace.
func (s Space) PartitionedPrefix(domain, tenant, namespace string) string {
	return s.AllPartitioned() + namesPath(domain, tenant, namespace)
}

// Partitioned is the key of a partitioned topic.
func (s Space) Partitioned(domain, tenant, namespace, topic string) string {
	return s.PartitionedPrefix(domain, tenant, namespace) + url.PathEscape(topic)
}

// TopicNamePrefix is the prefix of the names of topics of a namespace.
func (s Space) TopicNamePrefix(domain, tenant, namespace string) string {
	return s.AllTopicNames() + namesPath(domain, tenant, namespace)
}

// TopicName is the key of the name of a topic.
func (s Space) TopicName(domain, tenant, namespace, topic string) string {
	return s.TopicNamePrefix(domain, tenant, namespace) + url.PathEscape(topic)
}

// Creator is the key that the creations by an instance compare, of topics and of all that belongs to them. instance is empty for the one
// process of an embedded store.
func (s Space) Creator(instance string) string { return s.Topics() + "creator/" + instance }

// DeletedPrefix is the prefix of the deleted topics whose data is not all gone.
func (s Space) DeletedPrefix() string { return s.Topics() + "deleted/" }

// Deleted is the key of such a topic.
func (s Space) Deleted(id uint64) string {
	return string(appendHex([]byte(s.DeletedPrefix()), id))
}

// ParseDeleted reads such a key.
func (s Space) ParseDeleted(key []byte) (id uint64, ok bool) {
	p := parser{key: key}
	p.text(s.DeletedPrefix())
	id = p.hex()
	return id, p.end()
}

func namesPath(domain, tenant, namespace string) string {
	return url.PathEscape(domain) + "/" + url.PathEscape(tenant) + "/" + url.PathEscape(namespace) + "/"
}

// Topic is the key space of the data of one topic:
//
//	owner                              who serves the topic; its mod revision is the fence of every write and the ledger id
//	dormant                            what an instance that gave the topic up knew of its idle time
//	e/<ledger>/<last entry>            a block of plain entries
//	e/<ledger>/<last entry>.<txn>      a block of entries of one transaction
//	c/<generation>/<ledger>/<last entry>   a block of compacted entries
//	m/epoch                            the topic epoch: of the last exclusive producer
//	m/compaction                       where the compaction stands, and which generation holds its entries
//	m/tail                             position of the last entry ever written
//	m/ledger/<ledger>                  last entry of a ledger before the current one that had entries
//	m/terminated                       exists if the topic takes no more messages
//	m/dedup/<page>                     producer names and the highest sequence ids that they have stored
//	m/txn/<txn>                        an unresolved transaction
//	m/sub/<subscription>/name          a durable subscription
//	m/sub/<subscription>/properties    what its client says of it; absent: nothing
//	m/sub/<subscription>/frontier      its cursor's frontier
//	m/sub/<subscription>/acked/<ledger>/<bucket>   done entries behind the frontier
//	m/sub/<subscription>/batch/<ledger>/<entry>    a partly acknowledged batch
//	m/sub/<subscription>/pending/<txn>/<number>    what one group commit acknowledged in a transaction
//	m/sub/<subscription>/pending/<txn>/committed   exists if the transaction is committed and that is not in the cursor yet
//
// Numbers are 16 hex digits, a <txn> is 32: most, then least.
type Topic struct{ prefix string }

// Topic returns the key space of the topic with an id.
func (s Space) Topic(id uint64) Topic {
	return Topic{string(appendHex([]byte(s.Topics()+"data/"), id)) + "/"}
}

// Prefix is the prefix of everything of the topic.
func (t Topic) Prefix() string { return t.prefix }

// Owner is the key that the fence is about.
func (t Topic) Owner() string { return t.prefix + "owner" }

// Dormant is the key of what an instance left that gave the topic up.
func (t Topic) Dormant() string { return t.prefix + "dormant" }

// EntryPrefix is the prefix of all blocks of entries.
func (t Topic) EntryPrefix() string { return t.prefix + "e/" }

// Entries is the key that lies before every block whose last entry is at or behind the given one, and behind all others.
func (t Topic) Entries(ledger, entry uint64) string {
	return string(t.appendEntry(ledger, entry, 0))
}

// TxnEntries is the key of a block of a transaction.
func (t Topic) TxnEntries(ledger, last uint64, id txn.ID) string {
	return string(appendTxn(append(t.appendEntry(ledger, last, 1+32), '.'), id))
}

func (t Topic) appendEntry(ledger, entry uint64, extra int) []byte {
	key := make([]byte, 0, len(t.prefix)+len("e/")+hexSize+len("/")+hexSize+extra)
	key = append(append(key, t.prefix...), "e/"...)
	key = append(appendHex(key, ledger), '/')
	return appendHex(key, entry)
}

// ParseEntries reads a key of a block of entries; inTxn tells one of a transaction.
func (t Topic) ParseEntries(key []byte) (ledger, last uint64, id txn.ID, inTxn, ok bool) {
	p := parser{key: key}
	p.text(t.EntryPrefix())
	ledger = p.hex()
	p.text("/")
	last = p.hex()
	if len(p.key) > 0 {
		p.text(".")
		id, inTxn = p.txn(), true
	}
	return ledger, last, id, inTxn, p.end()
}

// CompactedPrefix is the prefix of the compacted entries of all generations.
func (t Topic) CompactedPrefix() string { return t.prefix + "c/" }

// Generation is the prefix of the compacted entries of one generation.
func (t Topic) Generation(generation uint64) string {
	return string(appendHex([]byte(t.CompactedPrefix()), generation)) + "/"
}

// Compacted is the key of the block of a generation whose last entry is the given one; as a bound it lies before every block
// that ends at or behind it.
func (t Topic) Compacted(generation, ledger, entry uint64) string {
	key := append(appendHex([]byte(t.Generation(generation)), ledger), '/')
	return string(appendHex(key, entry))
}

// Compaction is the key of where the compaction stands.
func (t Topic) Compaction() string { return t.prefix + "m/compaction" }

// MetaPrefix is the prefix of everything that a load reads.
func (t Topic) MetaPrefix() string { return t.prefix + "m/" }

// Tail is the key of the last position.
func (t Topic) Tail() string { return t.prefix + "m/tail" }

// Epoch is the key of the topic epoch.
func (t Topic) Epoch() string { return t.prefix + "m/epoch" }

// Terminated is the key that says that the topic takes no more messages.
func (t Topic) Terminated() string { return t.prefix + "m/terminated" }

// LedgerPrefix is the prefix of the earlier ledgers.
func (t Topic) LedgerPrefix() string { return t.prefix + "m/ledger/" }

// Ledger is the key of an earlier ledger.
func (t Topic) Ledger(ledger uint64) string {
	return string(appendHex([]byte(t.LedgerPrefix()), ledger))
}

// ParseLedger reads the key of an earlier ledger.
func (t Topic) ParseLedger(key []byte) (ledger uint64, ok bool) {
	p := parser{key: key}
	p.text(t.LedgerPrefix())
	ledger = p.hex()
	return ledger, p.end()
}

// DedupPrefix is the prefix of the pages of producer names.
func (t Topic) DedupPrefix() string { return t.prefix + "m/dedup/" }

// Dedup is the key of a page of producer names.
func (t Topic) Dedup(page uint64) string { return string(appendHex([]byte(t.DedupPrefix()), page)) }

// ParseDedup reads the key of a page of producer names.
func (t Topic) ParseDedup(key []byte) (page uint64, ok bool) {
	p := parser{key: key}
	p.text(t.DedupPrefix())
	page = p.hex()
	return page, p.end()
}

// TxnPrefix is the prefix of the unresolved transactions.
func (t Topic) TxnPrefix() string { return t.prefix + "m/txn/" }

// Txn is the key of an unresolved transaction.
func (t Topic) Txn(id txn.ID) string { return string(appendTxn([]byte(t.TxnPrefix()), id)) }

// ParseTxn reads the key of an unresolved transaction.
func (t Topic) ParseTxn(key []byte) (id txn.ID, ok bool) {
	p := parser{key: key}
	p.text(t.TxnPrefix())
	id = p.txn()
	return id, p.end()
}

// SubscriptionsPrefix is the prefix of all durable subscriptions.
func (t Topic) SubscriptionsPrefix() string { return t.prefix + "m/sub/" }

// Subscription returns the key space of a durable subscription. id is a number within the topic.
func (t Topic) Subscription(id uint64) Subscription {
	return Subscription{string(appendHex([]byte(t.SubscriptionsPrefix()), id)) + "/"}
}

// ParseSubscription cuts the key of something of a subscription; rest is what follows the subscription's prefix.
func (t Topic) ParseSubscription(key []byte) (id uint64, rest string, ok bool) {
	p := parser{key: key}
	p.text(t.SubscriptionsPrefix())
	id = p.hex()
	p.text("/")
	return id, string(p.key), !p.failed
}

// Subscription is the key space of a durable subscription.
type Subscription struct{ prefix string }

// Prefix is the prefix of everything of the subscription.
func (s Subscription) Prefix() string { return s.prefix }

// Name is the key of the name.
func (s Subscription) Name() string { return s.prefix + "name" }

// Properties is the key of what the client that created the subscription says of it.
func (s Subscription) Properties() string { return s.prefix + "properties" }

// Frontier is the key of the cursor's frontier.
func (s Subscription) Frontier() string { return s.prefix + "frontier" }

// AckedPrefix is the prefix of the buckets of done entries.
func (s Subscription) AckedPrefix() string { return s.prefix + "acked/" }

// Acked is the key of a bucket of done entries.
func (s Subscription) Acked(ledger, bucket uint64) string { return s.pair("acked/", ledger, bucket) }

// BatchPrefix is the prefix of the partly acknowledged batches.
func (s Subscription) BatchPrefix() string { return s.prefix + "batch/" }

// Batch is the key of a partly acknowledged batch.
func (s Subscription) Batch(ledger, entry uint64) string { return s.pair("batch/", ledger, entry) }

func (s Subscription) pair(kind string, a, b uint64) string {
	return string(appendHex(append(appendHex([]byte(s.prefix+kind), a), '/'), b))
}

// ParsePair reads what follows kind and a slash in the key of a bucket or a batch.
func ParsePair(text string) (a, b uint64, ok bool) {
	p := parser{key: []byte(text)}
	a = p.hex()
	p.text("/")
	b = p.hex()
	return a, b, p.end()
}

// PendingPrefix is the prefix of what a transaction holds.
func (s Subscription) PendingPrefix(id txn.ID) string {
	return string(appendTxn([]byte(s.prefix+"pending/"), id)) + "/"
}

// Pending is the key of what one group commit acknowledged in a transaction.
func (s Subscription) Pending(id txn.ID, number uint64) string {
	return string(appendHex([]byte(s.PendingPrefix(id)), number))
}

// Committed is the key that makes what a transaction holds acknowledged.
func (s Subscription) Committed(id txn.ID) string { return s.PendingPrefix(id) + committed }

const committed = "committed"

// ParseCommitted reads what follows "pending/" in such a key.
func ParseCommitted(text string) (id txn.ID, ok bool) {
	p := parser{key: []byte(text)}
	id = p.txn()
	p.text("/" + committed)
	return id, p.end()
}

// ParsePending reads what follows "pending/" in a key of Pending.
func ParsePending(text string) (id txn.ID, number uint64, ok bool) {
	p := parser{key: []byte(text)}
	id = p.txn()
	p.text("/")
	number = p.hex()
	return id, number, p.end()
}
