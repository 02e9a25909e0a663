package topicname

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxBytes bounds a full name.
const MaxBytes = 10 << 10

// Domains that a name can have.
const (
	Persistent    = "persistent"
	NonPersistent = "non-persistent"
	Segment       = "segment" // PIP-473
)

// Name is a parsed topic name. The zero Name is not valid.
type Name struct {
	Domain    string
	Tenant    string
	Namespace string // local part, without the tenant
	Local     string // with a partition suffix, if there is one
}

// Error says which rule a name breaks.
type Error struct{ Name, Rule string }

func (e *Error) Error() string {
	name := e.Name
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	return fmt.Sprintf("Invalid topic name: %q: %s", name, e.Rule)
}

var part = regexp.MustCompile(`^[-=:.\w]+$`)

// Parse reads a full name (domain://tenant/namespace/topic), or a short one (topic, tenant/namespace/topic), which is
// persistent and, without tenant and namespace, in public/default. Names of the V1 form with a cluster part are refused.
func Parse(text string) (Name, error) {
	if text == "" {
		return Name{}, &Error{text, "it is empty"}
	}
	if len(text) > MaxBytes {
		return Name{}, &Error{text, fmt.Sprintf("longer than %d bytes", MaxBytes)}
	}
	domain, rest, full := strings.Cut(text, "://")
	if !full {
		domain, rest = Persistent, text
		switch strings.Count(text, "/") {
		case 0:
			rest = "public/default/" + text
		case 2:
		default:
			return Name{}, &Error{text, "a short name is <topic> or <tenant>/<namespace>/<topic>"}
		}
	}
	switch domain {
	case Persistent, NonPersistent, Segment:
	default:
		return Name{}, &Error{text, fmt.Sprintf("unknown domain %q, want persistent, non-persistent or segment", domain)}
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return Name{}, &Error{text, "want <domain>://<tenant>/<namespace>/<topic>"}
	}
	n := Name{Domain: domain, Tenant: parts[0], Namespace: parts[1], Local: parts[2]}
	if !part.MatchString(n.Tenant) || !part.MatchString(n.Namespace) {
		return Name{}, &Error{text, "tenant and namespace may have letters, digits and -_=:. only"}
	}
	if strings.TrimSpace(n.Local) == "" {
		return Name{}, &Error{text, "the topic part is blank"}
	}
	if domain == Segment && !isSegment(n.Local) {
		return Name{}, &Error{text, "want segment://<tenant>/<namespace>/<topic>/<first hash>-<last hash>-<segment id>, hashes of four hex digits"}
	}
	if domain != Segment && strings.Contains(n.Local, "/") {
		return Name{}, &Error{text, "too many slashes"}
	}
	for _, r := range n.Local {
		if r < ' ' || r == 0x7f {
			return Name{}, &Error{text, "control characters are not allowed"}
		}
	}
	return n, nil
}

// segment is the local part of a segment of a scalable topic: its range of hashes and its number. Source: PIP-460.
var segment = regexp.MustCompile(`^[^/]+/([0-9a-f]{4})-([0-9a-f]{4})-[0-9]{1,19}$`)

func isSegment(local string) bool {
	hashes := segment.FindStringSubmatch(local)
	return hashes != nil && hashes[1] <= hashes[2]
}

// String returns the full name.
func (n Name) String() string {
	return n.Domain + "://" + n.Tenant + "/" + n.Namespace + "/" + n.Local
}

// NamespaceName returns tenant/namespace.
func (n Name) NamespaceName() string { return n.Tenant + "/" + n.Namespace }

// Partition returns the index of a partition's name, and -1 for every other name.
func (n Name) Partition() int {
	i := strings.LastIndex(n.Local, "-partition-")
	if i <= 0 {
		return -1
	}
	digits := n.Local[i+len("-partition-"):]
	p, err := strconv.Atoi(digits)
	if err != nil || p < 0 || strconv.Itoa(p) != digits {
		return -1
	}
	return p
}

// Base returns the partitioned topic that a partition belongs to, and n itself for every other name.
func (n Name) Base() Name {
	if n.Partition() >= 0 {
		n.Local = n.Local[:strings.LastIndex(n.Local, "-partition-")]
	}
	return n
}

// WithPartition returns the name of partition p of n.
func (n Name) WithPartition(p int) Name {
	n.Local += "-partition-" + strconv.Itoa(p)
	return n
}

// SystemNamespace is the namespace of Pulsar's own topics.
const SystemNamespace = "pulsar/system"

// AssignTopic is the partitioned topic whose partitions stand for the coordinators. No data is ever in it.
//
// Source: SystemTopicNames.TRANSACTION_COORDINATOR_ASSIGN.
var AssignTopic = Name{Persistent, "pulsar", "system", "transaction_coordinator_assign"}

// TransactionInternal reports whether n is a name that transactions reserve: nobody may produce to it, subscribe to it or
// create it.
//
// Source: SystemTopicNames.isTransactionInternalName, as observed on 4.0.7: the log prefix counts in pulsar/system only.
func (n Name) TransactionInternal() bool {
	if strings.HasSuffix(n.Base().Local, "__transaction_pending_ack") {
		return true
	}
	if n.NamespaceName() != SystemNamespace {
		return false
	}
	base := n.Base().Local
	return base == AssignTopic.Local || strings.HasPrefix(base, "__transaction_log_") || strings.HasPrefix(base, "__terminated_txn_state_")
}

// ValidPart reports whether text may be the name of a tenant, a namespace or a cluster.
func ValidPart(text string) bool { return len(text) <= MaxBytes && part.MatchString(text) }
