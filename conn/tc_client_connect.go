package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// registration is a connection's registration with one coordinator: the connection is closed when the coordinator's term
// ends, because a Go client looks up again only then (TC-24).
type registration struct {
	connected bool
	waiting   []waitingConnect // while the first request is under way
}

type waitingConnect struct {
	request
	id uint64
}

// tcClientConnect connects the client with a coordinator of this server. Repeats on a connection share the one
// registration. Every refusal is an ERROR frame: the Go client takes a TC_CLIENT_CONNECT_RESPONSE with an error for success,
// and only an ERROR NotAllowedError makes a Java client give up on a coordinator that does not exist (TC-6).
// Errors: UnsupportedVersionError (TC-2), NotAllowedError, and those of Coordinators.Connect.
//
// Source: PulsarApi.proto CommandTcClientConnectRequest; ServerCnx.handleTcClientConnectRequest.
func (r request) tcClientConnect(cmd *pulsarproto.CommandTcClientConnectRequest) {
	const command = pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST
	requestID, tc := cmd.GetRequestId(), cmd.GetTcId()
	if r.refuseTransactions(command, requestID) {
		return
	}
	if cmd.GetScalable() {
		r.fail(command, requestID, errScalable)
		return
	}
	if count := r.services.Coordinators.Count(); tc >= count {
		r.fail(command, requestID, cnx.Refuse(pulsarproto.ServerError_NotAllowedError,
			fmt.Sprintf("Transaction coordinator with id %d does not exist, there are %d", tc, count)))
		return
	}
	if !r.register(tc, requestID) {
		return
	}
	r.services.Coordinators.Connect(r.ctx, tc, r.termEnded, func(err error) { r.registered(tc, err) })
}

// register reports whether this request has to ask coordinator tc. Others are answered here, or with the one that asks.
func (r request) register(tc, requestID uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.coordinators[tc]
	switch {
	case known == nil:
		if r.coordinators == nil {
			r.coordinators = make(map[uint64]*registration)
		}
		r.coordinators[tc] = &registration{waiting: []waitingConnect{{r, requestID}}}
		return true
	case known.connected:
		r.answerTcClientConnect(requestID)
	default:
		known.waiting = append(known.waiting, waitingConnect{r, requestID})
	}
	return false
}

// registered answers every request that waits for the registration with tc.
func (s *session) registered(tc uint64, err error) {
	s.mu.Lock()
	r := s.coordinators[tc]
	waiting := r.waiting
	r.waiting, r.connected = nil, err == nil
	if err != nil {
		delete(s.coordinators, tc)
	}
	s.mu.Unlock()
	for _, w := range waiting {
		if err != nil {
			w.fail(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST, w.id, err)
			continue
		}
		w.answerTcClientConnect(w.id)
	}
}

func (r request) answerTcClientConnect(requestID uint64) {
	r.answer(func(b []byte) []byte { return pulsarproto.AppendTcClientConnectResponse(b, requestID) })
}
