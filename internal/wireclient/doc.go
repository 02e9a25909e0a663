// Package wireclient is a small client of Pulsar's binary protocol, for the command line, benchmarks and tests: one connection,
// requests pipelined without limit, answers matched by request id. It repeats nothing and hides nothing.
package wireclient
