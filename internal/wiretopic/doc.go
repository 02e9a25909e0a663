// Package wiretopic produces and consumes over one connection of package wireclient, for tests: one message an entry, every
// answer visible, nothing repeated and nothing hidden.
package wiretopic
