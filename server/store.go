package server

import (
	"context"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic"
)

// keyPrefix is the first element of every key.
const keyPrefix = "pulsar-tc"

// maxTxnOps is the limit on the operations of one etcd transaction that the embedded server is given.
const maxTxnOps = 8192

// minMessageBytes is the size of messages that the embedded store is made for where maxMessageSize is smaller: a snapshot of
// a transaction with all participants that the defaults allow must fit one request, too.
const minMessageBytes = 5 << 20

// deliveryHeadroom is what the frame of a MESSAGE needs beside what its SEND had: a client takes no larger frame than that of
// maxMessageSize and FramePadding. Within the padding, metadata do not count: the Go client's chunks are maxMessageSize long
// without them.
const deliveryHeadroom = 1 << 10

// storedPadding is by how much a message as it is stored, with its metadata, may be larger than maxMessageSize.
const storedPadding = pulsarproto.FramePadding - deliveryHeadroom

// limits are those of the store in use, and what follows from them.
type limits struct{ txnOps, requestBytes, messageSize int }

// External reports whether the store is an etcd cluster, which other processes may share.
func (o *Options) External() bool { return len(o.Config.EtcdEndpoints()) > 0 }

func (o *Options) space() keyspace.Space { return keyspace.New(keyPrefix, o.Config.ClusterName) }

func (o *Options) store() etcdstore.Options {
	return etcdstore.Options{
		Dir:                 o.Config.DataDir,
		Space:               o.space(),
		InitialCoordinators: uint64(o.Config.InitialNumTransactionCoordinators),
		MaxMessageBytes:     max(o.Config.MaxMessageSize, minMessageBytes),
		MaxTxnOps:           maxTxnOps,
		QuotaBytes:          o.Config.EtcdQuotaBytes,
	}
}

func (o *Options) etcdCluster() etcdstore.ClusterOptions {
	c := o.Config
	return etcdstore.ClusterOptions{
		Endpoints:           c.EtcdEndpoints(),
		TrustFile:           c.EtcdTrustCertsFilePath,
		CertificateFile:     c.EtcdCertificateFilePath,
		KeyFile:             c.EtcdKeyFilePath,
		User:                c.EtcdUser,
		Password:            c.EtcdPassword,
		Space:               o.space(),
		InitialCoordinators: uint64(c.InitialNumTransactionCoordinators),
		MaxTxnOps:           c.EtcdMaxTxnOps,
		MaxRequestBytes:     c.EtcdMaxRequestBytes,
		Manage:              c.EtcdManageStore,
	}
}

// leadership is by lease among the processes on an etcd cluster. An embedded store has one process that may write to it:
// whoever gets the lock of the data directory next takes over at once, and nobody waits for its lease. A short one would only
// end terms of a machine that stands still for a moment.
func (o *Options) leadership() etcdleader.Options {
	if o.External() {
		return etcdleader.Options{Lease: o.Config.CoordinatorLease}
	}
	return etcdleader.Options{Exclusive: true, Lease: time.Minute}
}

func (o *Options) openStore(ctx context.Context) (*etcdstore.Store, error) {
	if o.External() {
		return etcdstore.Connect(ctx, o.etcdCluster(), o.Log)
	}
	return etcdstore.Open(ctx, o.store(), o.Log)
}

func (s *Server) openStore(ctx, run context.Context) error {
	if !s.options.External() {
		if err := s.options.unfinishedRestore(); err != nil {
			return err
		}
	}
	store, err := s.options.openStore(ctx)
	if err != nil {
		return err
	}
	s.store = store
	s.limits = s.options.limits(store.MaxTxnOps(), store.MaxRequestBytes())
	s.kv = wrapKV(store.Client())
	if s.options.WrapKV != nil {
		s.kv = s.options.WrapKV(s.kv)
	}
	s.onClose(func(context.Context) error {
		s.stop()
		s.tasks.Wait() // an embedded store cannot bear to be asked while it closes
		s.requests.Lock()
		return store.Close()
	})
	s.tasks.Go(func() {
		select {
		case err := <-store.Failed():
			s.fail(fmt.Errorf("the store failed: %w", err))
		case <-run.Done():
		}
	})
	return nil
}

// limits tells clients of the messages that a request of the store has room for, if these are smaller than maxMessageSize.
func (o *Options) limits(txnOps, requestBytes int) limits {
	fits := topic.MostMessageBytes(requestBytes) - storedPadding
	return limits{txnOps, requestBytes, min(o.Config.MaxMessageSize, fits)}
}
