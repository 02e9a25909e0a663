package cluster

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func of(ids ...string) *Cluster {
	instances := make([]Instance, len(ids))
	for i, id := range ids {
		instances[i] = Instance{ID: id}
	}
	return &Cluster{view: newView(instances)}
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = NewID()
	}
	return all
}

// coordinators tells where each of count is placed.
func coordinators(c *Cluster, count int) []string {
	c.SetCoordinators(uint64(count))
	places := make([]string, count)
	for tc := range places {
		places[tc] = c.PlaceCoordinator(uint64(tc)).ID
	}
	return places
}

func moved(before, after []string) (n int) {
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}

// Every instance is given as many coordinators as any other, or one less, and the order in which instances are heard of does
// not matter.
func TestCoordinatorsAreSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, count := rapid.IntRange(1, 12).Draw(t, "instances"), rapid.IntRange(1, 70).Draw(t, "coordinators")
		names := rapid.SliceOfNDistinct(rapid.StringMatching("[0-9a-f]{32}"), n, n, rapid.ID).Draw(t, "ids")
		places := coordinators(of(names...), count)
		if again := coordinators(of(rapid.Permutation(names).Draw(t, "order")...), count); moved(places, again) != 0 {
			t.Fatalf("two processes that see the same disagree: %v, %v", places, again)
		}
		load := map[string]int{}
		for _, place := range places {
			load[place]++
		}
		for _, name := range names {
			if load[name] != count/n && load[name] != count/n+1 {
				t.Fatalf("%d of %d coordinators at one of %d instances", load[name], count, n)
			}
		}
	})
}

// An instance that joins or leaves moves what it takes or gives, and on average less than as much again between others.
func TestCoordinatorsMoveLittle(t *testing.T) {
	const rounds = 200
	for _, c := range []struct{ count, instances int }{{16, 2}, {16, 3}, {16, 4}, {64, 5}} {
		total := 0
		for range rounds {
			names := ids(c.instances + 1)
			total += moved(coordinators(of(names[1:]...), c.count), coordinators(of(names...), c.count))
		}
		least := float64(c.count) / float64(c.instances+1)
		if average := float64(total) / rounds; average > 2*least {
			t.Errorf("%d coordinators, %d instances and one more: %.1f moves on average, want at most %.1f", c.count, c.instances, average, 2*least)
		}
	}
}

func TestTopicsMoveOnlyToAndFrom(t *testing.T) {
	names := ids(5)
	before, after := of(names[1:]...), of(names...)
	took := 0
	for i := range 2000 {
		topic := fmt.Sprintf("persistent://public/default/orders-%d", i)
		was, is := before.PlaceTopic(topic).ID, after.PlaceTopic(topic).ID
		switch {
		case is == names[0]:
			took++
		case was != is:
			t.Fatalf("%s moved between instances that were there before and after", topic)
		}
	}
	if took < 300 || took > 500 { // 400 ± 5 standard deviations
		t.Errorf("the fifth instance took %d of 2000 topics", took)
	}
}

func TestNowhere(t *testing.T) {
	if place := of().PlaceTopic("persistent://a/b/c"); place != (Instance{}) {
		t.Errorf("a topic is placed at %v", place)
	}
	nobody, alone := of(), of("a")
	nobody.SetCoordinators(1)
	alone.SetCoordinators(1)
	if place := nobody.PlaceCoordinator(0); place != (Instance{}) {
		t.Errorf("a coordinator is placed at %v", place)
	}
	if place := alone.PlaceCoordinator(1); place != (Instance{}) {
		t.Errorf("a coordinator that is not is placed at %v", place)
	}
}

// The number of coordinators grows under one view.
func TestCountGrows(t *testing.T) {
	c := of(ids(3)...)
	if small := coordinators(c, 3); len(small) != 3 {
		t.Fatal(small)
	}
	changed := c.Changed()
	load := map[string]int{}
	for _, place := range coordinators(c, 6) {
		load[place]++
	}
	for id, n := range load {
		if n != 2 {
			t.Errorf("%d of 6 coordinators at %s of three", n, id)
		}
	}
	select {
	case <-changed:
	default:
		t.Error("nobody hears that places have changed")
	}
}
