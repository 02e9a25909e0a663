package conn

import (
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// attachmentCost is about what a producer or consumer takes, here and in its topic, beside the bytes of its command: its topic
// keeps the name and the metadata, and the whole command as long as the producer waits to become exclusive.
const attachmentCost = 4 << 10

var errTooManyAttached = cnx.Refuse(pulsarproto.ServerError_TooManyRequests, "too many producers and consumers on one connection")

// takeAttachment counts a producer or consumer that is to be attached, unless it is one too many; mu is held.
func (s *session) takeAttachment(cost int) error {
	if s.attachedBytes+cost > s.options.MaxAttachedBytes {
		return errTooManyAttached
	}
	s.attachedBytes += cost
	return nil
}
