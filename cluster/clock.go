package cluster

import "time"

// SkewLimit is how far the clocks of two instances may be apart before an operator hears of it. Deadlines of transactions and
// the ages of what is kept are judged by the clock of whoever leads at the time.
const SkewLimit = time.Minute

// Skew is by how much the clock of an instance is ahead of the one here; negative: behind. known is false until the instance has
// written its record under our eyes. The record may be as old as refreshInterval where the watch had a gap.
func (c *Cluster) Skew(id string) (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead, known = c.skews[id]
	return ahead, known
}

// compareClocks judges the records that are new. The caller holds mu.
func (c *Cluster) compareClocks(instances []Instance) {
	skews := make(map[string]time.Duration, len(instances))
	now := c.options.Now()
	for _, instance := range instances {
		before, known := c.skews[instance.ID]
		if known {
			skews[instance.ID] = before
		}
		if !c.following || instance.ID == c.self.ID || instance.Clock == c.clocks[instance.ID] {
			continue
		}
		ahead := time.UnixMilli(instance.Clock).Sub(now)
		skews[instance.ID] = ahead
		if ahead.Abs() > SkewLimit && (!known || before.Abs() <= SkewLimit) {
			c.options.Log.Warn().Str("instance", instance.ID).Str("address", instance.ServiceURL).Dur("ahead_ms", ahead).
				Msg("the clock of another instance differs from the clock here")
		}
	}
	clear(c.clocks)
	for _, instance := range instances {
		c.clocks[instance.ID] = instance.Clock
	}
	c.skews = skews
}
