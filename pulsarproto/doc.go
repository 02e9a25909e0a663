// Package pulsarproto is Pulsar's binary protocol as bytes: the messages of pulsar_api.proto and their generated Go.
package pulsarproto

//go:generate go run ./internal/generate
