package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// lookupTopic tells which address serves a topic.
// Errors: InvalidTopicName, AuthorizationError, TooManyRequests, and those of Lookup.Topic.
//
// Source: PulsarApi.proto CommandLookupTopic; ServerCnx.handleLookup.
func (r request) lookupTopic(cmd *pulsarproto.CommandLookupTopic) {
	requestID := cmd.GetRequestId()
	failed := func(err error) {
		code, text := r.failure(pulsarproto.BaseCommand_LOOKUP, err, false)
		r.answer(func(b []byte) []byte { return pulsarproto.AppendLookupError(b, requestID, code, text) })
	}
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		failed(err)
		return
	}
	r.lookup(failed, func() {
		if err := r.mayLookup(name); err != nil {
			failed(err)
			return
		}
		answer, err := r.services.Lookup.Topic(r.ctx, name, r.caller, cmd)
		if err != nil {
			failed(err)
			return
		}
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendLookupResponse(b, requestID, pulsarproto.LookupAnswer(answer))
		})
	})
}
