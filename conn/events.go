package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// Events are called as things happen, from any goroutine; they must not block. Reasons are from the fixed sets below, fit
// for a metric's label.
type Events struct {
	ConnectionOpened func()
	// ConnectionClosed follows each ConnectionOpened once.
	ConnectionClosed func(reason CloseReason)
	// ConnectionRefused is a connection over a limit; it is neither opened nor closed.
	ConnectionRefused func()
	CommandReceived   func(command pulsarproto.BaseCommand_Type)
	// RequestFailed is an answer that carries an error.
	RequestFailed func(command pulsarproto.BaseCommand_Type, code pulsarproto.ServerError)
	// BadInput is input that its connection was closed for, or a SEND that was refused for its bytes.
	BadInput func(reason BadInput)
}

// CloseReason is why a connection ended.
type CloseReason string

// The reasons of ConnectionClosed.
const (
	ClosedByPeer        CloseReason = "peer"
	ClosedHandshake     CloseReason = "handshake_timeout"
	ClosedSilent        CloseReason = "silent"
	ClosedNotReading    CloseReason = "not_reading"
	ClosedBadInput      CloseReason = "bad_input"
	ClosedRefusedLogin  CloseReason = "refused_login"
	ClosedExpiredLogin  CloseReason = "expired_login"
	ClosedTermEnded     CloseReason = "coordinator_term_ended"
	ClosedHandedOver    CloseReason = "coordinator_handed_over"
	ClosedShutdown      CloseReason = "shutdown"
	ClosedNetworkFailed CloseReason = "network"
)

// BadInput is what was wrong with input.
type BadInput string

// The reasons of BadInput.
const (
	BadFrame            BadInput = "frame"
	BadTLS              BadInput = "tls_on_plain_port"
	BadPlain            BadInput = "plain_on_tls_port"
	BadHandshake        BadInput = "tls_handshake"
	BadHTTP             BadInput = "http_on_binary_port"
	BadFrameSize        BadInput = "frame_size"
	BadCommand          BadInput = "command"
	BadCommandType      BadInput = "command_type"
	BadBeforeConnect    BadInput = "before_connect"
	BadSecondConnect    BadInput = "second_connect"
	BadResponse         BadInput = "response_from_client"
	BadUnknownProducer  BadInput = "unknown_producer"
	BadProducerNotReady BadInput = "producer_not_ready"
	BadPayload          BadInput = "payload_missing"
	BadChecksum         BadInput = "checksum"
	BadMetadata         BadInput = "metadata"
)

// withDefaults returns e with a function in every field.
func (e Events) withDefaults() Events {
	if e.ConnectionOpened == nil {
		e.ConnectionOpened = func() {}
	}
	if e.ConnectionClosed == nil {
		e.ConnectionClosed = func(CloseReason) {}
	}
	if e.ConnectionRefused == nil {
		e.ConnectionRefused = func() {}
	}
	if e.CommandReceived == nil {
		e.CommandReceived = func(pulsarproto.BaseCommand_Type) {}
	}
	if e.RequestFailed == nil {
		e.RequestFailed = func(pulsarproto.BaseCommand_Type, pulsarproto.ServerError) {}
	}
	if e.BadInput == nil {
		e.BadInput = func(BadInput) {}
	}
	return e
}
