// Package process builds the pulsar-tc command and runs it as a process of its own, for tests that kill it.
package process
