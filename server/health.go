package server

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
)

// health tells whether every coordinator that is to be led here serves, what the store refuses, and who else is there. Without the
// store or its layout nothing is well, also where no coordinator notices.
func (s *Server) health() admin.Health {
	h := admin.Health{
		Healthy: true, Transactions: s.group.Count() > 0, Store: s.store.Space().String(),
		Coordinators: []admin.Coordinator{}, Instances: instances(s.cluster),
	}
	if away := s.store.Away(); away != "" {
		h.Healthy, h.Store = false, "away: "+away
	}
	if missing := s.missing.Load(); missing != nil {
		h.Healthy, h.Store = false, "without its layout: "+missing.Error()
	}
	for _, status := range s.group.Statuses() {
		if !status.Expected {
			continue
		}
		one := coordinatorHealth(&status)
		h.Healthy = h.Healthy && one.Serving
		h.Coordinators = append(h.Coordinators, one)
	}
	return h
}

func coordinatorHealth(s *coordinator.Status) admin.Coordinator {
	return admin.Coordinator{
		ID: s.TC, Serving: s.Serving, Reason: s.Reason(), Term: s.Term, Transactions: s.Live, Outcomes: s.Outcomes, LastIssued: s.LastIssued,
		LoadSeconds: s.LoadTook.Seconds(),
	}
}

func instances(c *cluster.Cluster) []admin.Instance {
	var all []admin.Instance
	self := c.Self().ID
	for _, i := range c.Instances() {
		one := admin.Instance{
			ID: i.ID, Self: i.ID == self, ServiceURL: i.ServiceURL, ServiceURLTLS: i.ServiceURLTLS, WebURL: i.WebURL, WebURLTLS: i.WebURLTLS,
			Version: i.Version,
		}
		if i.Started != 0 {
			one.StartedAt = time.UnixMilli(i.Started).UTC()
		}
		if ahead, known := c.Skew(i.ID); known {
			seconds := ahead.Seconds()
			one.ClockAheadSeconds = &seconds
		}
		all = append(all, one)
	}
	return all
}

// largestSkew is how far any other instance's clock is from the one here.
func largestSkew(c *cluster.Cluster) (largest time.Duration) {
	for _, i := range c.Instances() {
		if ahead, known := c.Skew(i.ID); known {
			largest = max(largest, ahead.Abs())
		}
	}
	return largest
}
