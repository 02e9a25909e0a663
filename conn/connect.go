package conn

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
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
	identity, err := s.login(cmd)
	if err != nil {
		return s.refuseLogin(pulsarproto.BaseCommand_CONNECT, clientVersion(cmd.GetClientVersion()), err)
	}
	if s.caller, s.instance, err = s.admit(cmd, identity.Caller); err != nil {
		return s.refuseLogin(pulsarproto.BaseCommand_CONNECT, clientVersion(cmd.GetClientVersion()), err)
	}
	s.clientVersion = clientVersion(cmd.GetClientVersion())
	s.protocol = min(protocolVersion, cmd.GetProtocolVersion())
	s.connected.Store(true)
	// Without it a Java client cannot ask for partitions without creating the topic.
	features := &pulsarproto.FeatureFlags{SupportsGetPartitionedMetadataWithoutAutoCreation: proto.Bool(true)}
	if s.watchesTopics() {
		features.SupportsTopicWatchers = proto.Bool(true)
	}
	s.out.queue(func(b []byte) []byte {
		return pulsarproto.AppendConnected(b, pulsarproto.Connected{
			ServerVersion:   "pulsar-tc " + s.options.Version,
			ProtocolVersion: s.protocol,
			MaxMessageSize:  int32(s.options.MaxMessageSize),
			FeatureFlags:    features,
		})
	})
	s.watchCredentials(identity, cmd.GetFeatureFlags().GetSupportsAuthRefresh())
	s.log.Debug().Str("client", clientVersion(cmd.GetClientVersion())).Int32("protocol", s.protocol).
		Str("role", s.caller.Role).Msg("client connected")
	return nil
}

func (s *session) login(cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	if s.options.Authenticator == nil {
		return cnx.Identity{}, nil
	}
	return s.options.Authenticator.Login(s.certificates, cmd)
}

// admit returns whom the connection acts for: who logged in or, if that is another instance, whom it speaks for.
func (s *session) admit(cmd *pulsarproto.CommandConnect, own Caller) (caller Caller, instance bool, err error) {
	if s.options.Instances == nil {
		return own, false, nil
	}
	caller, instance, err = s.options.Instances.Admit(cmd)
	if err == nil && !instance {
		caller = own
	}
	return caller, instance, err
}

// refuseLogin tells a client that its credentials are refused, and ends the connection.
func (s *session) refuseLogin(command pulsarproto.BaseCommand_Type, client string, err error) error {
	if skipped, logged := s.server.faults.next(); logged {
		s.log.Info().Str("client", client).Err(err).AnErr("cause", errors.Unwrap(err)).Uint64("lines_skipped", skipped).Msg("login refused")
	}
	s.options.Events.RequestFailed(command, pulsarproto.ServerError_AuthenticationError)
	s.out.queue(func(b []byte) []byte {
		return pulsarproto.AppendConnectError(b, pulsarproto.ServerError_AuthenticationError, err.Error())
	})
	s.finish(ClosedRefusedLogin)
	return errStopped
}

// clientVersion is what a client calls itself, short enough for a log line.
func clientVersion(version string) string {
	const longest = 100
	return version[:min(len(version), longest)]
}
