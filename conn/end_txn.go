package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// endTxn commits or aborts a transaction. The answer waits until every participant has answered.
// Errors: UnsupportedVersionError (TC-2), NotAllowedError without a known action (TC-3), TransactionCoordinatorNotFound, and
// those of Coordinators.EndTxn.
//
// Source: PulsarApi.proto CommandEndTxn; ServerCnx.handleEndTxn.
func (r request) endTxn(cmd *pulsarproto.CommandEndTxn, scalable bool) {
	requestID, named := cmd.GetRequestId(), cmd.ClientName != nil
	if r.refuseTransactions(pulsarproto.BaseCommand_END_TXN, requestID) {
		return
	}
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := r.txnAnswer(pulsarproto.BaseCommand_END_TXN, requestID, id, named,
		pulsarproto.AppendEndTxnResponse, pulsarproto.AppendEndTxnError)
	if err := r.checkTransaction(id.Most, scalable); err != nil {
		done(err)
		return
	}
	action, err := txnAction(cmd.TxnAction)
	if err != nil {
		done(err)
		return
	}
	r.services.Coordinators.EndTxn(r.ctx, id, r.caller, action, named, done)
}

// txnAction reads an action that must not be taken for a commit because it is absent or unknown (TC-3).
func txnAction(action *pulsarproto.TxnAction) (txn.Action, error) {
	if action == nil {
		return 0, errTxnAction
	}
	switch *action {
	case pulsarproto.TxnAction_COMMIT:
		return txn.Commit, nil
	case pulsarproto.TxnAction_ABORT:
		return txn.Abort, nil
	}
	return 0, errTxnAction
}
