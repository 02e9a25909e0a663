package pulsarproto

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// brokerRequestID is the request_id of the commands that a broker starts: required, and ignored by clients.
// Source: Commands.newCloseProducer is called with -1.
const brokerRequestID uint64 = math.MaxUint64

// Connected is the body of CONNECTED.
type Connected struct {
	ServerVersion   string
	ProtocolVersion int32 // the smaller of both sides'
	MaxMessageSize  int32 // bytes, above 0: clients take 0 for 5 MiB
	FeatureFlags    *FeatureFlags
}

// AppendConnected appends CONNECTED.
func AppendConnected(dst []byte, connected Connected) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_CONNECTED.Enum(),
		Connected: &CommandConnected{
			ServerVersion:   &connected.ServerVersion,
			ProtocolVersion: &connected.ProtocolVersion,
			MaxMessageSize:  &connected.MaxMessageSize,
			FeatureFlags:    connected.FeatureFlags,
		},
	})
}

// refreshChallenge is the data of a challenge for fresh credentials. Source: AuthData.REFRESH_AUTH_DATA_BYTES.
var refreshChallenge = []byte("PulsarAuthRefresh")

// AppendAuthChallenge appends AUTH_CHALLENGE, which asks for fresh credentials of a method.
func AppendAuthChallenge(dst []byte, serverVersion, method string, protocolVersion int32) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_AUTH_CHALLENGE.Enum(),
		AuthChallenge: &CommandAuthChallenge{
			ServerVersion:   &serverVersion,
			Challenge:       &AuthData{AuthMethodName: &method, AuthData: refreshChallenge},
			ProtocolVersion: &protocolVersion,
		},
	})
}

// AppendPing appends PING.
func AppendPing(dst []byte) []byte { return appendEmpty(dst, BaseCommand_PING) }

// AppendPong appends PONG.
func AppendPong(dst []byte) []byte { return appendEmpty(dst, BaseCommand_PONG) }

func appendEmpty(dst []byte, commandType BaseCommand_Type) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), commandType)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendSuccess appends SUCCESS.
func AppendSuccess(dst []byte, requestID uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_SUCCESS)
	dst = appendUint64(dst, 1, requestID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendError appends ERROR, which answers any request that has a request_id. The Go client goes by the name of code and
// by text.
func AppendError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_ERROR)
	dst = appendUint64(dst, 1, requestID)
	dst = appendFault(dst, 2, code, text)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendConnectError appends the ERROR that refuses CONNECT, which has no request_id of its own.
func AppendConnectError(dst []byte, code ServerError, text string) []byte {
	return AppendError(dst, brokerRequestID, code, text)
}

// appendFault appends an error field and the message field that follows it. The message is never empty: the Go client
// takes an ACK_RESPONSE with an empty one for success.
func appendFault(dst []byte, number protowire.Number, code ServerError, text string) []byte {
	dst = appendUint64(dst, number, uint64(code))
	return appendString(dst, number+1, faultText(code, text))
}

// faultText returns text, or the name of code in place of an empty one.
func faultText(code ServerError, text string) string {
	if text == "" {
		return code.String()
	}
	return text
}
