//go:build !race

package crash

// officialWorkers is how many workers use the official client.
const officialWorkers = 2
