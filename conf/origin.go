package conf

import (
	"fmt"
	"regexp"
	"strings"
)

// Kind is a sort of source. Later ones win over earlier ones.
type Kind int

const (
	Default     Kind = iota // no source gave the key
	File                    // the configuration file
	Environment             // a variable with the bare name of a known key
	Prefixed                // a PULSAR_PREFIX_ variable
	Set                     // a --set flag
)

// environmentPrefix is that of Pulsar's images (bin/apply-config-from-env.py).
const environmentPrefix = "PULSAR_PREFIX_"

// Origin tells where a value came from.
type Origin struct {
	Kind Kind
	File string // File: its path
	Line int    // File: line of the key, from 1
	Key  string // the spelling used there
}

func (o Origin) String() string {
	switch o.Kind {
	case File:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case Environment:
		return "environment " + o.Key
	case Prefixed:
		return "environment " + environmentPrefix + o.Key
	case Set:
		return "--set " + o.Key
	default:
		return "default"
	}
}

// assignment is one key=value of one source. The value is trimmed.
type assignment struct {
	key, value string
	origin     Origin
}

// secretName recognizes keys, unknown ones included, whose values are kept out of all texts.
var secretName = regexp.MustCompile(`(?i)password|secret|token.*key|credential|authparam|authenticationparam|pluginparams|basicauth`)

// addressName recognizes keys whose values may have a user with a password in front of a host.
var addressName = regexp.MustCompile(`(?i)(url|urltls|servers)$`)

// shown is value as it may be printed beside key.
func shown(key, value string) string {
	if value == "" {
		return ""
	}
	if k := notHonouredKeys[key]; (k != nil && k.secret) || secretName.MatchString(key) {
		return "***"
	}
	if addressName.MatchString(key) {
		return withoutUser(value)
	}
	return value
}

// withoutUser leaves out what is in front of the last host that has a user, whatever characters a password has.
func withoutUser(addresses string) string {
	at := strings.LastIndex(addresses, "@")
	if at < 0 {
		return addresses
	}
	scheme := strings.Index(addresses, ":") + 1
	if slashes := strings.Index(addresses, "://"); slashes >= 0 && slashes < at {
		scheme = slashes + len("://")
	}
	return addresses[:min(scheme, at)] + "***" + addresses[at:]
}
