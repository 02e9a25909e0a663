//go:build !race

package workload

// officialWorkers is how many workers use the official client.
const officialWorkers = 2
