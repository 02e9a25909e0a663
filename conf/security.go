package conf

import (
	"slices"
	"strings"
)

// Authentication providers, without the package that Pulsar's names begin with.
const (
	ProviderToken = "AuthenticationProviderToken"
	ProviderTLS   = "AuthenticationProviderTls"
	ProviderBasic = "AuthenticationProviderBasic"
)

// providerPackage is where these classes are in Pulsar.
const providerPackage = "org.apache.pulsar.broker.authentication."

// List splits a list at its commas. Empty elements do not count.
func List(value string) []string {
	var all []string
	for element := range strings.SplitSeq(value, ",") {
		if element = strings.TrimSpace(element); element != "" {
			all = append(all, element)
		}
	}
	return all
}

// Providers are the classes of authenticationProviders by their short names, none twice.
func Providers(classes string) []string {
	var all []string
	for _, class := range List(classes) {
		if name := strings.TrimPrefix(class, providerPackage); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// switchOffPorts turns off a plain port that is given as empty beside a TLS port, as Pulsar does.
func (l *loader) switchOffPorts(config *Config) {
	for _, port := range []struct {
		keys  []string
		plain *int
		tls   int
	}{
		{[]string{"brokerServicePort", "servicePort"}, &config.BrokerServicePort, config.BrokerServicePortTLS},
		{[]string{"webServicePort"}, &config.WebServicePort, config.WebServicePortTLS},
	} {
		if origin, empty := l.givenAsEmpty(port.keys); port.tls >= 0 && empty {
			*port.plain = -1
			l.report.origins[port.keys[0]] = origin
		}
	}
}

// givenAsEmpty reports that one of keys is given and that its last value is empty, and where.
func (l *loader) givenAsEmpty(keys []string) (Origin, bool) {
	for _, key := range keys {
		if given := l.given[key]; len(given) > 0 && given[len(given)-1].value == "" {
			return given[len(given)-1].origin, true
		}
	}
	return Origin{}, false
}

// checkTLS finds what keeps the TLS ports from serving.
func (l *loader) checkTLS(config *Config) {
	ports := config.BrokerServicePortTLS >= 0 || config.WebServicePortTLS >= 0
	for _, key := range []string{"tlsEnabled", "tlsEnabledInProxy"} {
		given := l.given[key]
		if !ports && len(given) > 0 && strings.EqualFold(given[len(given)-1].value, "true") {
			l.fault(given[len(given)-1], "must not be set alone: brokerServicePortTls and webServicePortTls turn TLS on")
		}
	}
	if !ports {
		return
	}
	l.require("tlsCertificateFilePath", config.TLSCertificateFilePath, "must name the certificate of the TLS ports")
	l.require("tlsKeyFilePath", config.TLSKeyFilePath, "must name the key of the TLS ports")
	if config.TLSRequireTrustedClientCertOnConnect {
		l.require("tlsTrustCertsFilePath", config.TLSTrustCertsFilePath, "must name who stands behind the clients that tlsRequireTrustedClientCertOnConnect asks for")
	}
}

// checkAuthentication finds what would leave a server more open, or more closed, than its settings say.
func (l *loader) checkAuthentication(config *Config) {
	if config.AuthorizationEnabled && !config.AuthenticationEnabled {
		l.require("authenticationEnabled", "", "must be true where authorizationEnabled is: without it nobody has a role")
	}
	if !config.AuthenticationEnabled {
		return
	}
	providers := Providers(config.AuthenticationProviders)
	if len(providers) == 0 && config.AnonymousUserRole == "" {
		l.require("authenticationProviders", "", "must name who checks credentials")
	}
	for _, provider := range providers {
		switch provider {
		case ProviderToken:
			l.require("tokenSecretKey", config.TokenSecretKey+config.TokenPublicKey, "must be set, or tokenPublicKey, for "+provider)
		case ProviderBasic:
			l.require("basicAuthConf", config.BasicAuthConf, "must be set for "+provider)
		case ProviderTLS:
			l.require("tlsTrustCertsFilePath", config.TLSTrustCertsFilePath, "must be set for "+provider)
		default:
			l.require("authenticationProviders", "", "must not name "+provider+": served are "+
				strings.Join([]string{ProviderToken, ProviderTLS, ProviderBasic}, ", "))
		}
	}
	if config.TokenAudienceClaim != "" {
		l.require("tokenAudience", config.TokenAudience, "must be set beside tokenAudienceClaim")
	}
	if !config.AuthorizationEnabled {
		l.report.warn("authorizationEnabled=false (%s): every role may produce, consume and administer", l.report.Origin("authorizationEnabled"))
	}
	if slices.Contains(List(config.SuperUserRoles), config.AnonymousUserRole) && config.AuthorizationEnabled {
		l.report.warn("superUserRoles (%s) has the anonymous role: everybody may do everything", l.report.Origin("superUserRoles"))
	}
}

// require reports key as a fault if value is empty.
func (l *loader) require(key, value, rule string) {
	if value != "" {
		return
	}
	origin := l.report.Origin(key)
	shownValue := ""
	if given := l.given[key]; len(given) > 0 {
		shownValue = given[len(given)-1].value
	}
	l.fault(assignment{key, shownValue, origin}, rule)
}
