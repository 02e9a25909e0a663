package certificate

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// Protocols are the TLS versions and cipher suites of a port. Zero values are those of Go's library.
type Protocols struct {
	Min, Max uint16
	Suites   []uint16 // of TLS 1.2 and below; those of 1.3 are not chosen from
}

// version is one of TLS, by the name that Java gives it.
type version struct {
	name   string
	number uint16
}

var versions = []version{{"TLSv1", tls.VersionTLS10}, {"TLSv1.1", tls.VersionTLS11}, {"TLSv1.2", tls.VersionTLS12}, {"TLSv1.3", tls.VersionTLS13}}

// ParseProtocols reads the lists of two keys, such as TLSv1.3,TLSv1.2 and the IANA names of suites. An empty list is the
// library's choice. ignored are suites that are not offered here.
//
// Source: broker.conf tlsProtocols, tlsCiphers.
func ParseProtocols(names, suites []string) (p Protocols, ignored []string, err error) {
	if p.Min, p.Max, err = parseVersions(names); err != nil {
		return Protocols{}, nil, err
	}
	for _, name := range suites {
		known := slices.IndexFunc(tls.CipherSuites(), func(suite *tls.CipherSuite) bool { return suite.Name == name })
		switch {
		case known < 0:
			ignored = append(ignored, name)
		case slices.Contains(tls.CipherSuites()[known].SupportedVersions, tls.VersionTLS12):
			p.Suites = append(p.Suites, tls.CipherSuites()[known].ID)
		}
	}
	if len(suites) > 0 && len(ignored) == len(suites) {
		return Protocols{}, nil, fmt.Errorf("%s: none of these suites is served; Go serves %s", strings.Join(suites, ","), served())
	}
	if len(suites) > 0 && len(p.Suites) == 0 { // suites of TLS 1.3 alone
		p.Min = tls.VersionTLS13
		if p.Max != 0 && p.Max < p.Min {
			return Protocols{}, nil, fmt.Errorf("%s: these suites are of TLSv1.3, which the list of versions leaves out", strings.Join(suites, ","))
		}
	}
	return p, ignored, nil
}

// parseVersions returns the least and the greatest version of a list. A gap between them cannot be had.
func parseVersions(names []string) (least, most uint16, err error) {
	wanted := map[uint16]bool{}
	for _, name := range names {
		i := slices.IndexFunc(versions, func(v version) bool { return v.name == name })
		if i < 0 {
			return 0, 0, fmt.Errorf("%s: want TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3", name)
		}
		number := versions[i].number
		if len(wanted) == 0 {
			least, most = number, number
		}
		wanted[number], least, most = true, min(least, number), max(most, number)
	}
	if len(wanted) > 0 && len(wanted) != int(most-least)+1 {
		return 0, 0, fmt.Errorf("%s: a version between two others cannot be left out", strings.Join(names, ","))
	}
	return least, most, nil
}

// served lists the suites of Go's library.
func served() string {
	var names []string
	for _, suite := range tls.CipherSuites() {
		names = append(names, suite.Name)
	}
	return strings.Join(names, ", ")
}
