package keyspace

import "github.com/pulsar-tc/pulsar-tc/txn"

// SchemaVersion is the layout that this build reads and writes. A store with a newer one is refused.
const SchemaVersion = 1

// Space is the root of one cluster's keys. The zero Space is not usable; use New.
type Space struct{ root string }

// New returns the key space of a cluster. prefix is one path element without slashes; cluster is the broker.conf clusterName.
func New(prefix, cluster string) Space { return Space{root: "/" + prefix + "/" + cluster + "/"} }

// Root is the prefix of every key of the space, with a trailing slash.
func (s Space) Root() string { return s.root }

// Schema is the key of the layout version.
func (s Space) Schema() string { return s.root + "meta/schema" }

// Coordinators is the key of the number of coordinators.
func (s Space) Coordinators() string { return s.root + "meta/coordinators" }

// PeerSecret is the key of what the instances of the cluster share to know each other.
func (s Space) PeerSecret() string { return s.root + "meta/peers" }

// Instances is the prefix of the live processes.
func (s Space) Instances() string { return s.root + "instances/" }

// Instance is the key of a live process. id has no slash.
func (s Space) Instance(id string) string { return s.Instances() + id }

// TC is the prefix of everything of one coordinator.
func (s Space) TC(tc uint64) string { return string(s.appendTC(tc, 0)) }

// appendTC makes the prefix of one coordinator with room for more behind it.
func (s Space) appendTC(tc uint64, room int) []byte {
	key := make([]byte, 0, len(s.root)+len("tc/")+hexSize+len("/")+room)
	key = append(append(key, s.root...), "tc/"...)
	return append(appendHex(key, tc), '/')
}

// Leader is the election key of a coordinator.
func (s Space) Leader(tc uint64) string { return s.TC(tc) + "leader" }

// Next is the key of the id bound of a coordinator.
func (s Space) Next(tc uint64) string { return s.TC(tc) + "next" }

// LogPrefix is the prefix of a coordinator's log entries.
func (s Space) LogPrefix(tc uint64) string { return s.TC(tc) + "log/" }

// Log is the key of one log entry.
func (s Space) Log(tc, index uint64) string {
	key := append(s.appendTC(tc, len("log/")+hexSize), "log/"...)
	return string(appendHex(key, index))
}

// OpenPrefix is the prefix of the open keys of one transaction.
func (s Space) OpenPrefix(id txn.ID) string { return string(s.appendOpen(id, 0)) }

func (s Space) appendOpen(id txn.ID, room int) []byte {
	key := append(s.appendTC(id.Most, len("open/")+hexSize+len("/")+room), "open/"...)
	return append(appendHex(key, id.Least), '/')
}

// Open is the key that exists exactly while id is OPEN and p is registered with it.
func (s Space) Open(id txn.ID, p txn.Participant) string {
	hash := p.Hash()
	return string(append(s.appendOpen(id, len(hash)), hash...))
}
