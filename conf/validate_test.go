package conf

import (
	"strings"
	"testing"
)

// What clients could not be told is refused as a setting, before anything is stored under it.
func TestAdvertisedAddress(t *testing.T) {
	for host, taken := range map[string]bool{
		"broker-1.example.org": true, "10.0.0.1": true, "::1": true, "": true, "under_score": true,
		"a b": false, ":": false, "http://x": false, "host:6650": false, "a,b": false, "[::1]": false,
	} {
		_, _, err := Load(Sources{Set: []string{"advertisedAddress=" + host}})
		if taken && err != nil {
			t.Errorf("%q: %v", host, err)
		}
		if !taken && (err == nil || !strings.Contains(err.Error(), "advertisedAddress") || !strings.Contains(err.Error(), "must be one host name")) {
			t.Errorf("%q: %v, want a fault of the setting", host, err)
		}
	}
}
