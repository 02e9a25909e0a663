package nonpersistent

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var (
	errProducerBusy = cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "Producer with the same name is already connected")
	errFenced       = cnx.Refuse(pulsarproto.ServerError_ProducerFenced, "Topic has an exclusive producer")
	errConsumerBusy = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Exclusive consumer is already connected")
	errOtherType    = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Subscription is of different type")
	errNoName       = cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "Subscription name is empty or reserved")
	errConflict     = cnx.Refuse(pulsarproto.ServerError_TransactionConflict, "Transactions are not supported on non-persistent topics")
	errGone         = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Consumer not found")
	errSeek         = cnx.Refuse(pulsarproto.ServerError_UnknownError, "Seek is not supported on non-persistent topics")
)

var errTxn = fmt.Errorf("%w: Transactions are not supported on non-persistent topics", txn.ErrNotAllowed)
