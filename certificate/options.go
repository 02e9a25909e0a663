package certificate

import (
	"time"

	"github.com/rs/zerolog"
)

// Options name the files. Source of all: broker.conf, the keys named.
type Options struct {
	CertificateFile string // tlsCertificateFilePath: the server's chain
	KeyFile         string // tlsKeyFilePath
	// TrustFile has the authorities that stand behind clients. Empty: no client certificate verifies.
	// tlsTrustCertsFilePath
	TrustFile string
	// RefreshCheck is how often the files are looked at; 0: at every connection. tlsCertRefreshCheckDurationSec
	RefreshCheck time.Duration
	// AllowInsecure lets in clients whose certificate does not verify. tlsAllowInsecureConnection
	AllowInsecure bool
	// Require lets in nobody without a certificate. tlsRequireTrustedClientCertOnConnect
	Require bool
	Log     zerolog.Logger
}
