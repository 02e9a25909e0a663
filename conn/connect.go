package conn

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// protocolVersion is the highest version of the protocol spoken here.
//
// Source: PulsarApi.proto, ProtocolVersion v21, which Pulsar 4.0.7 answers.
const protocolVersion = 21

// connect answers CONNECT with CONNECTED, or refuses the login and ends the connection.
//
// Source: ServerCnx.handleConnect, completeConnect.
func (s *session) connect(cmd *pulsarproto.CommandConnect) error {
	if s.connected.Load() {
		return &inputError{BadSecondConnect, errors.New("second CONNECT")}
	}
	caller, err := s.authenticate(cmd)
	if err != nil {
		if skipped, logged := s.server.faults.next(); logged {
			s.log.Info().Str("client", clientVersion(cmd)).Err(err).Uint64("lines_skipped", skipped).Msg("login refused")
		}
		s.options.Events.RequestFailed(pulsarproto.BaseCommand_CONNECT, pulsarproto.ServerError_AuthenticationError)
		s.out.queue(func(b []byte) []byte {
			return pulsarproto.AppendConnectError(b, pulsarproto.ServerError_AuthenticationError, err.Error())
		})
		s.finish(ClosedRefusedLogin)
		return errStopped
	}
	s.caller = caller
	s.protocol = min(protocolVersion, cmd.GetProtocolVersion())
	s.connected.Store(true)
	s.out.queue(func(b []byte) []byte {
		return pulsarproto.AppendConnected(b, pulsarproto.Connected{
			ServerVersion:   "pulsar-tc " + s.options.Version,
			ProtocolVersion: s.protocol,
			MaxMessageSize:  int32(s.options.MaxMessageSize),
			FeatureFlags: &pulsarproto.FeatureFlags{
				// Without it a Java client cannot ask for partitions without creating the topic.
				SupportsGetPartitionedMetadataWithoutAutoCreation: proto.Bool(true),
			},
		})
	})
	s.log.Debug().Str("client", clientVersion(cmd)).Int32("protocol", s.protocol).Msg("client connected")
	return nil
}

func (s *session) authenticate(cmd *pulsarproto.CommandConnect) (Caller, error) {
	if s.options.Authenticator == nil {
		return Caller{}, nil
	}
	return s.options.Authenticator.Authenticate(cmd)
}

// clientVersion is what a client calls itself, short enough for a log line.
func clientVersion(cmd *pulsarproto.CommandConnect) string {
	const longest = 100
	version := cmd.GetClientVersion()
	return version[:min(len(version), longest)]
}
