package registry

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Policy is what holds for the schemas of one topic.
type Policy struct {
	// Strategy says what may follow; Undefined stands for Full. Source: broker.conf schemaCompatibilityStrategy.
	Strategy schema.Strategy
	// AllowAutoUpdate lets producers and consumers add schemas. Source: broker.conf isAllowAutoUpdateSchemaEnabled.
	AllowAutoUpdate bool
	// ValidationEnforced refuses producers without a schema where there is one. Source: broker.conf isSchemaValidationEnforced.
	ValidationEnforced bool
}

// Options say how a Registry works. Zero numbers, durations and functions mean the default.
type Options struct {
	KV   clientv3.KV
	Keys keyspace.Space
	// Creator makes the first version of a topic.
	Creator *etcdcreator.Creator
	// Policy says what holds for a topic. It must not block. Default: Full, and schemas can be added.
	Policy func(topicname.Name) Policy
	// MaxBytes bounds a schema with its properties. Default 1 MiB.
	MaxBytes int
	// MaxVersions bounds the versions of one topic that count. Default 10000.
	MaxVersions uint64
	// StoreTimeout bounds one call of the store. Default 10 s.
	StoreTimeout time.Duration
	// Admit, if set, is asked before a schema is stored; its error is the answer.
	Admit func() error
	// Wrote, if set, is told the bytes of every write.
	Wrote func(bytes int)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Policy == nil {
		o.Policy = func(topicname.Name) Policy { return Policy{Strategy: schema.Full, AllowAutoUpdate: true} }
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	if o.MaxVersions == 0 {
		o.MaxVersions = 10000
	}
	if o.StoreTimeout == 0 {
		o.StoreTimeout = 10 * time.Second
	}
	if o.Admit == nil {
		o.Admit = func() error { return nil }
	}
	if o.Wrote == nil {
		o.Wrote = func(int) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
