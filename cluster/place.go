package cluster

import (
	"cmp"
	"slices"

	"github.com/twmb/murmur3"
)

// PlaceTopic is the instance that is to serve a topic which nobody serves: the one with the largest hash of its id and the
// name, so that an instance that comes or goes moves no topics between others. The zero Instance: every instance leaves.
func (c *Cluster) PlaceTopic(name string) Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var place Instance
	var largest uint64
	for _, instance := range c.view.instances {
		if weight := murmur3.SeedStringSum64(murmur3.StringSum64(name), instance.ID); weight >= largest {
			place, largest = instance, weight
		}
	}
	return place
}

// SetCoordinators says how many coordinators there are, which changes their places.
func (c *Cluster) SetCoordinators(count uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.coordinators != count {
		c.coordinators = count
		c.replace(newView(c.view.instances))
	}
}

// PlaceCoordinator is the instance that is to lead a coordinator. Every instance is given as many as any other, or one less.
// The zero Instance: every instance leaves, or there is no such coordinator.
func (c *Cluster) PlaceCoordinator(tc uint64) Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.view.instances) == 0 || tc >= c.coordinators {
		return Instance{}
	}
	if c.view.places == nil {
		c.view.places = placeCoordinators(c.view.instances, int(c.coordinators))
	}
	return c.view.instances[c.view.places[tc]]
}

// pair is a coordinator and an instance that could lead it.
type pair struct {
	weight       uint64
	tc, instance int
}

// placeCoordinators gives each coordinator an instance: of all pairs the one with the largest hash that both still need, again
// and again. An instance is full at count/n, or at one more while the remainder lasts. So whoever comes or goes moves few
// others' coordinators.
func placeCoordinators(instances []Instance, count int) []int {
	pairs := make([]pair, 0, count*len(instances))
	for i, instance := range instances {
		for tc := range count {
			pairs = append(pairs, pair{murmur3.SeedStringSum64(uint64(tc), instance.ID), tc, i})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.tc, b.tc), cmp.Compare(a.instance, b.instance))
	})
	places := make([]int, count)
	for tc := range places {
		places[tc] = -1
	}
	share, more := count/len(instances), count%len(instances)
	load := make([]int, len(instances))
	for _, p := range pairs {
		if places[p.tc] >= 0 || load[p.instance] > share || load[p.instance] == share && more == 0 {
			continue
		}
		if load[p.instance] == share {
			more--
		}
		places[p.tc] = p.instance
		load[p.instance]++
	}
	return places
}
