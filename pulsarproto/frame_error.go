package pulsarproto

import "fmt"

// FrameRule names a rule of the frame layout; short and fixed, fit for a metric's label.
type FrameRule string

// The rules a FrameError can name.
const (
	RuleTotalSizeMaximum   FrameRule = "total_size_maximum"   // total size <= max message size + FramePadding
	RuleTotalSizeMinimum   FrameRule = "total_size_minimum"   // total size >= 4, the command size field
	RuleCommandSizeMinimum FrameRule = "command_size_minimum" // command size >= 1
	RuleCommandSizeMaximum FrameRule = "command_size_maximum" // command size <= total size - 4
)

// FrameError is a size field that breaks a rule. The stream cannot be read any further.
type FrameError struct {
	Rule  FrameRule
	Size  uint32 // as received
	Limit int64  // the bound it is beyond
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("frame size %d breaks %s %d", e.Size, e.Rule, e.Limit)
}

// Protocol is a protocol that is not Pulsar's.
type Protocol string

// The protocols a ForeignProtocolError can name.
const (
	ProtocolTLS  Protocol = "TLS"
	ProtocolHTTP Protocol = "HTTP"
)

// ForeignProtocolError is a total size beyond the limit that is the start of another protocol: a TLS client on the plain
// port, a browser or a health check.
type ForeignProtocolError struct {
	Protocol Protocol
	First    [4]byte // the bytes at the place of the total size
}

func (e *ForeignProtocolError) Error() string {
	return fmt.Sprintf("peer speaks %s on a port for Pulsar's plain protocol: first bytes %q", e.Protocol, e.First[:])
}

// foreignProtocol recognises a TLS handshake record (RFC 8446 section 5.1: type 22, major version 3) and the request
// methods of HTTP, with the preface of HTTP/2.
func foreignProtocol(first [4]byte) (Protocol, bool) {
	if first[0] == 0x16 && first[1] == 0x03 {
		return ProtocolTLS, true
	}
	switch string(first[:]) {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN", "TRAC", "PRI ":
		return ProtocolHTTP, true
	}
	return "", false
}
