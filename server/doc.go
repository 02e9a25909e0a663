// Package server builds a whole pulsar-tc from its parts and joins them: the store, the coordinators, the topics, the binary
// protocol and HTTP. It is what the command runs and what tests start in process.
//
// It starts from the bottom up, so that whatever accepts a request has everything below it, and stops from the top down:
// connections first, which answer what they can, then coordinators, topics and the store.
package server
