package authentication

import (
	"crypto/x509"
	"errors"
	"time"
)

// Certificate proves the common name of a client certificate. The zero value is not valid.
type Certificate struct {
	verify func([]*x509.Certificate) error
}

// NewCertificate returns a provider. verify reports whether one of the trusted authorities stands behind a chain.
func NewCertificate(verify func([]*x509.Certificate) error) *Certificate {
	return &Certificate{verify: verify}
}

// Method implements Provider.
func (*Certificate) Method() string { return methodTLS }

// Authenticate implements Provider. The credentials end with the certificate.
//
// Source: AuthenticationProviderTls.authenticate.
func (c *Certificate) Authenticate(_ time.Time, credentials Credentials) (Proof, error) {
	if len(credentials.Certificates) == 0 {
		return Proof{}, &Refused{Text: "Unable to authenticate: a TLS client certificate is required"}
	}
	own := credentials.Certificates[0]
	if err := c.verify(credentials.Certificates); err != nil {
		var verdict x509.CertificateInvalidError
		if errors.As(err, &verdict) && verdict.Reason == x509.Expired {
			return Proof{}, &Refused{Text: expired, Cause: err}
		}
		return Proof{}, &Refused{Text: invalid, Cause: err}
	}
	if own.Subject.CommonName == "" {
		return Proof{}, refuseInvalid("the certificate has no common name")
	}
	return Proof{Role: own.Subject.CommonName, Expires: own.NotAfter}, nil
}
