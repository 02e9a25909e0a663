package coordinator

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// answerFunc receives the answer to a command: the effect, or the error that no machine gave.
type answerFunc func(*fsm.Effect, error)

// letter is one command on its way to the machine. answer is nil for commands that nobody waits for.
type letter struct {
	cmd    fsm.Command
	answer answerFunc
	since  time.Time
}

// maxWaiting bounds what waits for a coordinator, in bytes: it may be loading for a while, or not able to load.
const maxWaiting = 64 << 20

// size is about what a letter holds, in bytes.
func (l *letter) size() int {
	const fixed = 256
	add, is := l.cmd.(*fsm.AddParticipants)
	if !is {
		return fixed
	}
	size := fixed
	for i := range add.Participants {
		size += 64 + add.Participants[i].Size()
	}
	return size
}

// mailbox is the queue between everybody and the coordinator's goroutine.
type mailbox struct {
	wake chan struct{} // holds one token while letters wait

	mu      sync.Mutex // guards the following
	letters []letter
	bytes   int // of letters
	closed  bool
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// put queues a letter that somebody waits for. Errors: txn.ErrCoordinatorNotFound after close, txn.ErrTooManyRequests if too
// much waits.
func (m *mailbox) put(l letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return txn.ErrCoordinatorNotFound
	}
	if m.bytes > maxWaiting-l.size() {
		return fmt.Errorf("%w: %d bytes of requests wait for the coordinator already", txn.ErrTooManyRequests, m.bytes)
	}
	m.add(l)
	return nil
}

// tell queues a command that nobody waits for. After close it goes nowhere.
func (m *mailbox) tell(cmd fsm.Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.add(letter{cmd: cmd})
	}
}

// add queues l and wakes the coordinator for the first. The caller holds mu.
func (m *mailbox) add(l letter) {
	m.letters = append(m.letters, l)
	m.bytes += l.size()
	if len(m.letters) == 1 {
		m.ring()
	}
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
	m.letters, m.bytes = dst, 0
	return taken
}

// expired takes out the letters that somebody has waited for since before t.
func (m *mailbox) expired(t time.Time) []letter {
	return m.remove(func(l *letter) bool { return l.answer != nil && l.since.Before(t) })
}

// asked takes out the letters that somebody waits for.
func (m *mailbox) asked() []letter {
	return m.remove(func(l *letter) bool { return l.answer != nil })
}

func (m *mailbox) remove(which func(*letter) bool) []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []letter
	m.letters = slices.DeleteFunc(m.letters, func(l letter) bool {
		remove := which(&l)
		if remove {
			out = append(out, l)
			m.bytes -= l.size()
		}
		return remove
	})
	return out
}

// close takes no more letters and returns those that wait.
func (m *mailbox) close() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	rest := m.letters
	m.letters, m.bytes = nil, 0
	return rest
}
