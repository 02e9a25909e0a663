//go:build race

package workload

// officialWorkers is 0 under the race detector, which fails every test in which the official client reconnects: it sets a
// producer's name again while it sends under that name. Source: pulsar-client-go v0.21.0, partitionProducer.grabCnx and
// internalSingleSend.
const officialWorkers = 0
