package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// registration is a connection's registration with one coordinator: the connection is closed when the coordinator's term
// ends, because a Go client looks up again only then (TC-24).
type registration struct {
	connected bool
	waiting   []uint64 // request ids, while the first request is under way
}

// tcClientConnect connects the client with a coordinator of this server. Repeats on a connection share the one
// registration. Every refusal is an ERROR frame: the Go client takes a TC_CLIENT_CONNECT_RESPONSE with an error for success,
// and only an ERROR NotAllowedError makes a Java client give up on a coordinator that does not exist (TC-6).
// Errors: UnsupportedVersionError (TC-2), NotAllowedError, and those of Coordinators.Connect.
//
// Source: PulsarApi.proto CommandTcClientConnectRequest; ServerCnx.handleTcClientConnectRequest.
func (s *session) tcClientConnect(cmd *pulsarproto.CommandTcClientConnectRequest) {
	const command = pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST
	requestID, tc := cmd.GetRequestId(), cmd.GetTcId()
	if s.refuseTransactions(command, requestID) {
		return
	}
	if cmd.GetScalable() {
		s.fail(command, requestID, errScalable)
		return
	}
	if count := s.services.Coordinators.Count(); tc >= count {
		s.fail(command, requestID, &requestError{pulsarproto.ServerError_NotAllowedError,
			fmt.Sprintf("Transaction coordinator with id %d does not exist, there are %d", tc, count)})
		return
	}
	if !s.register(tc, requestID) {
		return
	}
	termEnded := func() { s.finish(ClosedTermEnded) }
	s.services.Coordinators.Connect(s.ctx, tc, termEnded, func(err error) { s.registered(tc, err) })
}

// register reports whether this request has to ask coordinator tc. Others are answered here, or with the one that asks.
func (s *session) register(tc, requestID uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.coordinators[tc]
	switch {
	case r == nil:
		if s.coordinators == nil {
			s.coordinators = make(map[uint64]*registration)
		}
		s.coordinators[tc] = &registration{waiting: []uint64{requestID}}
		return true
	case r.connected:
		s.answerTcClientConnect(requestID)
	default:
		r.waiting = append(r.waiting, requestID)
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
	for _, requestID := range waiting {
		if err != nil {
			s.fail(pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST, requestID, err)
			continue
		}
		s.answerTcClientConnect(requestID)
	}
}

func (s *session) answerTcClientConnect(requestID uint64) {
	s.out.answer(func(b []byte) []byte { return pulsarproto.AppendTcClientConnectResponse(b, requestID) })
}
