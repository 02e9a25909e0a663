package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// The encoders of the two answers to a command that names a transaction, whose id both of them echo.
type (
	appendDone   func(dst []byte, requestID, mostBits, leastBits uint64) []byte
	appendFailed func(dst []byte, requestID, mostBits, leastBits uint64, code pulsarproto.ServerError, text string) []byte
)

// txnAnswer returns what answers a command that names a transaction. named tells a request with client_name.
func (r request) txnAnswer(command pulsarproto.BaseCommand_Type, requestID uint64, id txn.ID, named bool, done appendDone, failed appendFailed) func(error) {
	return func(err error) {
		if err != nil {
			code, text := r.failure(command, err, named)
			r.answer(func(b []byte) []byte { return failed(b, requestID, id.Most, id.Least, code, text) })
			return
		}
		r.answer(func(b []byte) []byte { return done(b, requestID, id.Most, id.Least) })
	}
}
