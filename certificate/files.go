package certificate

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// material is what the files held at one moment.
type material struct {
	pair  tls.Certificate
	trust *x509.CertPool // nil: no file
	sum   [sha256.Size]byte
}

// files are the bytes of the three files.
type files struct{ certificate, key, trust []byte }

func (o *Options) read() (files, error) {
	var f files
	for _, file := range []struct {
		key, path string
		content   *[]byte
	}{
		{"tlsCertificateFilePath", o.CertificateFile, &f.certificate},
		{"tlsKeyFilePath", o.KeyFile, &f.key},
		{"tlsTrustCertsFilePath", o.TrustFile, &f.trust},
	} {
		if file.path == "" && file.content == &f.trust {
			continue
		}
		content, err := os.ReadFile(file.path)
		if err != nil {
			return files{}, fmt.Errorf("%s: %w", file.key, err)
		}
		*file.content = content
	}
	return f, nil
}

// sum tells contents apart.
func (f *files) sum() [sha256.Size]byte {
	hash := sha256.New()
	for _, content := range [][]byte{f.certificate, f.key, f.trust} {
		part := sha256.Sum256(content)
		hash.Write(part[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// cutOff reports that a block of a PEM file does not end, as while the file is being written. The library passes over such blocks.
func cutOff(text []byte) bool {
	begun := bytes.Count(text, []byte("-----BEGIN "))
	for ; ; begun-- {
		block, rest := pem.Decode(text)
		if block == nil {
			return begun > 0
		}
		text = rest
	}
}

func (o *Options) parse(f files) (*material, error) {
	if cutOff(f.certificate) {
		return nil, fmt.Errorf("tlsCertificateFilePath=%s: it is cut off", o.CertificateFile)
	}
	pair, err := tls.X509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, fmt.Errorf("tlsCertificateFilePath=%s, tlsKeyFilePath=%s: %w", o.CertificateFile, o.KeyFile, err)
	}
	m := &material{pair: pair, sum: f.sum()}
	if o.TrustFile == "" {
		return m, nil
	}
	if cutOff(f.trust) {
		return nil, fmt.Errorf("tlsTrustCertsFilePath=%s: it is cut off", o.TrustFile)
	}
	m.trust = x509.NewCertPool()
	if !m.trust.AppendCertsFromPEM(f.trust) {
		return nil, fmt.Errorf("tlsTrustCertsFilePath=%s: it holds no certificate in PEM", o.TrustFile)
	}
	return m, nil
}
