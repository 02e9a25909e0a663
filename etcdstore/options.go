package etcdstore

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	// requestHeadroom is what a request may need beyond the largest message: keys, compares, records of the same group.
	requestHeadroom = mebibyte
	// maxMessageSize is Pulsar's default. Source: broker.conf maxMessageSize.
	maxMessageSize = 5 * mebibyte
	// largestRequest keeps raft's buffers, which hold whole requests, and 32-bit sizes far from overflow.
	largestRequest = 512 * mebibyte
	// largestQuota32 keeps the backend file, which is mapped as a whole, within half of a 32-bit address space.
	largestQuota32 = gibibyte
	// leastNewReserve lets eight thousand transactions end: of about a KiB each, with their records, the marks in one topic
	// and etcd's pages.
	leastNewReserve = 8 * mebibyte
	// leastDataReserve leaves as much again to what was admitted before data was refused.
	leastDataReserve = 2 * leastNewReserve
	// leastQuota is the one of which a quarter is leastDataReserve.
	leastQuota = 4 * leastDataReserve
	// largestQuota keeps sums of quota and reserves far from overflow.
	largestQuota = 1 << 50
)

// Options say where and how large a store is. The zero value of a number means its default.
type Options struct {
	// Dir is the data directory. It is created if its parent exists or can be created.
	Dir string
	// Lock is that of Dir, if the caller has it already: he keeps it until the store is closed, and gives it up himself.
	Lock *Lock
	// Space is the key space whose layout version is checked and created.
	Space keyspace.Space
	// InitialCoordinators is the number of transaction coordinators of a store that has none yet. Default 1.
	InitialCoordinators uint64
	// MaxMessageBytes is the largest message that a caller stores in one request. Default 5 MiB.
	MaxMessageBytes int
	// MaxTxnOps limits the compares, the then-operations and the else-operations of one etcd transaction, each. Default 8192.
	MaxTxnOps int
	// QuotaBytes is how large the live data may grow. Default 8 GiB, 1 GiB on 32-bit machines, which is their most;
	// at least 64 MiB.
	QuotaBytes int64
	// DataReserve is the part of the quota, and of the free disk, below which data is refused. Default 512 MiB, at most a
	// quarter of the quota; at least 16 MiB, twice that on the disk.
	DataReserve int64
	// NewReserve is the part below which new transactions are refused as well. Default half of DataReserve; at least
	// 8 MiB, twice that on the disk.
	NewReserve int64
}

// withDefaults fills in what is zero and returns every fault of the rest at once.
func (o Options) withDefaults() (Options, error) {
	if o.InitialCoordinators == 0 {
		o.InitialCoordinators = 1
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = maxMessageSize
	}
	if o.MaxTxnOps == 0 {
		o.MaxTxnOps = 8192
	}
	if o.QuotaBytes == 0 {
		o.QuotaBytes = defaultQuota()
	}
	if o.DataReserve == 0 {
		o.DataReserve = min(512*mebibyte, o.QuotaBytes/4)
	}
	if o.NewReserve == 0 {
		o.NewReserve = o.DataReserve / 2
	}
	return o, o.validate()
}

func (o Options) validate() error {
	var faults []error
	if o.Dir == "" {
		faults = append(faults, errors.New("no data directory"))
	}
	if o.MaxMessageBytes < 0 || o.MaxMessageBytes > largestRequest {
		faults = append(faults, fmt.Errorf("message size %d: want 1 to %d bytes", o.MaxMessageBytes, largestRequest))
	}
	if o.MaxTxnOps < 128 || o.MaxTxnOps > 1<<20 {
		faults = append(faults, fmt.Errorf("%d operations in a transaction: want 128 to %d", o.MaxTxnOps, 1<<20))
	}
	if o.QuotaBytes < leastQuota || o.QuotaBytes > maxQuota() {
		faults = append(faults, fmt.Errorf("quota %d: want %d to %d bytes", o.QuotaBytes, leastQuota, maxQuota()))
	}
	if o.NewReserve < leastNewReserve || o.DataReserve < max(leastDataReserve, o.NewReserve) || o.DataReserve > o.QuotaBytes {
		faults = append(faults, fmt.Errorf("reserves %d and %d bytes: want at least %d and %d, ordered and within the quota of %d",
			o.NewReserve, o.DataReserve, leastNewReserve, leastDataReserve, o.QuotaBytes))
	}
	return errors.Join(faults...)
}

// MaxRequestBytes is the largest etcd request that a store opened with o takes.
func (o Options) MaxRequestBytes() int {
	if o.MaxMessageBytes == 0 {
		return maxMessageSize + requestHeadroom
	}
	return o.MaxMessageBytes + requestHeadroom
}

func defaultQuota() int64 { return min(8*gibibyte, maxQuota()) }

func maxQuota() int64 {
	if strconv.IntSize == 32 {
		return largestQuota32
	}
	return largestQuota
}
