package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// Instance is one process. The zero Instance is none.
type Instance struct {
	// ID is random, made when the process starts: a process that starts again is another one.
	ID string `json:"id"`
	// The addresses of its ports, as advertised; empty where a port is off.
	ServiceURL    string `json:"serviceUrl,omitempty"`
	ServiceURLTLS string `json:"serviceUrlTls,omitempty"`
	WebURL        string `json:"webUrl,omitempty"`
	WebURLTLS     string `json:"webUrlTls,omitempty"`
	Version       string `json:"version,omitempty"`
	// Started and Clock are its wall clock at its start and when this was written, in ms since the epoch.
	Started int64 `json:"started"`
	Clock   int64 `json:"clock"`
}

// NewID returns the id of a new process: 32 hex digits.
func NewID() string {
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// parse reads the record of an instance.
func parse(space keyspace.Space, key, value []byte) (Instance, error) {
	var read Instance
	if err := json.Unmarshal(value, &read); err != nil {
		return Instance{}, fmt.Errorf("record of an instance: %w", err)
	}
	if read.ID == "" || strings.ContainsAny(read.ID, " /") {
		return Instance{}, errors.New("record of an instance: its id is missing or has blanks or slashes")
	}
	if space.Instance(read.ID) != string(key) {
		return Instance{}, fmt.Errorf("record of an instance: it says to be %.64q", read.ID)
	}
	return read, nil
}

// same reports that nothing but the clock differs.
func (i Instance) same(other Instance) bool {
	i.Clock = other.Clock
	return i == other
}
