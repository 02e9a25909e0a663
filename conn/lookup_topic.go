package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// lookupTopic tells which address serves a topic.
// Errors: InvalidTopicName, TooManyRequests, and those of Lookup.Topic.
//
// Source: PulsarApi.proto CommandLookupTopic; ServerCnx.handleLookup.
func (s *session) lookupTopic(cmd *pulsarproto.CommandLookupTopic) {
	requestID := cmd.GetRequestId()
	failed := func(err error) {
		code, text := s.failure(pulsarproto.BaseCommand_LOOKUP, err, false)
		s.out.answer(func(b []byte) []byte { return pulsarproto.AppendLookupError(b, requestID, code, text) })
	}
	name, err := topicname.Parse(cmd.GetTopic())
	if err != nil {
		failed(err)
		return
	}
	s.lookup(failed, func() {
		answer, err := s.services.Lookup.Topic(s.ctx, name, s.caller, cmd)
		if err != nil {
			failed(err)
			return
		}
		s.out.answer(func(b []byte) []byte {
			return pulsarproto.AppendLookupResponse(b, requestID, pulsarproto.LookupAnswer(answer))
		})
	})
}
