package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
)

// answerFunc receives the answer to a command: the effect, or the error that no machine gave.
type answerFunc func(*fsm.Effect, error)

// letter is one command on its way to the machine. answer is nil for commands that nobody waits for.
type letter struct {
	cmd    fsm.Command
	answer answerFunc
	since  time.Time
}

// mailbox is the queue between everybody and the coordinator's goroutine.
type mailbox struct {
	wake chan struct{} // holds one token while letters wait

	mu      sync.Mutex // guards the following
	letters []letter
	closed  bool
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// put queues l and reports whether the mailbox takes letters.
func (m *mailbox) put(l letter) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.letters = append(m.letters, l)
	first := len(m.letters) == 1
	m.mu.Unlock()
	if first {
		m.ring()
	}
	return true
}

func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take moves all waiting letters to dst, which must be empty, and keeps dst's memory for new ones.
func (m *mailbox) take(dst []letter) []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.letters
	m.letters = dst
	return taken
}

// expired takes out the letters that somebody has waited for since before t.
func (m *mailbox) expired(t time.Time) []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []letter
	m.letters = slices.DeleteFunc(m.letters, func(l letter) bool {
		late := l.answer != nil && l.since.Before(t)
		if late {
			out = append(out, l)
		}
		return late
	})
	return out
}

// close takes no more letters and returns those that wait.
func (m *mailbox) close() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	rest := m.letters
	m.letters = nil
	return rest
}
