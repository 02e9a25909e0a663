package cluster

import "time"

// twin is another instance that is advertised where this one is.
type twin struct {
	since time.Time
	told  bool
}

// compareAddresses warns, once, of instances that are advertised where this one is: clients reach one of them only, whoever they are
// sent to. What a process at the same address left behind is gone after its lease. The caller holds mu.
func (c *Cluster) compareAddresses(instances []Instance) {
	twins := map[string]twin{}
	now := c.options.Now()
	for _, other := range instances {
		if other.ID == c.self.ID || !other.sharesAddress(c.self) {
			continue
		}
		known, seen := c.twins[other.ID]
		if !seen {
			known.since = now
		}
		if !known.told && now.Sub(known.since) > 2*c.options.Lease {
			known.told = true
			c.options.Log.Warn().Str("instance", other.ID).Str("address", other.ServiceURL).Str("address_tls", other.ServiceURLTLS).
				Msg("another instance is advertised at the address of this one: clients that are sent to one of them reach the other; " +
					"give each its own advertisedAddress or ports")
		}
		twins[other.ID] = known
	}
	c.twins = twins
}

func (i Instance) sharesAddress(other Instance) bool {
	return i.ServiceURL != "" && i.ServiceURL == other.ServiceURL || i.ServiceURLTLS != "" && i.ServiceURLTLS == other.ServiceURLTLS
}
