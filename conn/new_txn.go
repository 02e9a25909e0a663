package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// newTxn opens a transaction. The coordinator's number is in every answer, errors included: Java clients route by it.
// Errors: UnsupportedVersionError (TC-2), TransactionCoordinatorNotFound, and those of Coordinators.NewTxn.
//
// Source: PulsarApi.proto CommandNewTxn; ServerCnx.handleNewTxn.
func (r request) newTxn(cmd *pulsarproto.CommandNewTxn, scalable bool) {
	requestID, tc, named := cmd.GetRequestId(), cmd.GetTcId(), cmd.ClientName != nil
	if r.refuseTransactions(pulsarproto.BaseCommand_NEW_TXN, requestID) {
		return
	}
	done := func(id txn.ID, err error) {
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_NEW_TXN, err, named)
			r.answer(func(b []byte) []byte { return pulsarproto.AppendNewTxnError(b, requestID, tc, code, text) })
			return
		}
		r.answer(func(b []byte) []byte { return pulsarproto.AppendNewTxnResponse(b, requestID, id.Most, id.Least) })
	}
	if err := r.checkTransaction(tc, scalable); err != nil {
		done(txn.ID{}, err)
		return
	}
	ttlMillis := cmd.GetTxnTtlSeconds() // despite the name: clients send milliseconds
	r.services.Coordinators.NewTxn(r.ctx, tc, r.caller, ttlMillis, cmd.GetClientName(), named, done)
}

// refuseTransactions answers a coordinator request with an ERROR frame, as Pulsar does, if transactions are off.
//
// Source: ServerCnx.checkTransactionEnableAndSendError.
func (r request) refuseTransactions(command pulsarproto.BaseCommand_Type, requestID uint64) bool {
	if r.services.Coordinators.Count() > 0 {
		return false
	}
	r.fail(command, requestID, errTransactionsOff)
	return true
}

// checkTransaction finds the refusals that hold for all requests to coordinator tc.
func (r request) checkTransaction(tc uint64, scalable bool) error {
	if scalable {
		return errScalable
	}
	if tc >= r.services.Coordinators.Count() {
		return cnx.Refuse(pulsarproto.ServerError_TransactionCoordinatorNotFound,
			fmt.Sprintf("Transaction coordinator with id %d not found!", tc))
	}
	return nil
}
