package topic

import "sync"

// call is a function that waits to run in a topic. alive is false if the topic was closed before its turn came: then it must
// only answer.
type call func(alive bool)

// mailbox runs calls one after the other. It has a goroutine only while calls wait.
type mailbox struct {
	// settle runs in the same goroutine after each round of calls.
	settle func()
	// tasks counts the goroutine of the mailbox and all others that its owner starts.
	tasks sync.WaitGroup

	mu      sync.Mutex // guards the rest
	waiting []call
	running bool
	closed  bool
}

// post queues a call. It reports false if the mailbox is closed; then the call never runs.
func (m *mailbox) post(c call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.waiting = append(m.waiting, c)
	if !m.running {
		m.running = true
		m.tasks.Go(m.run)
	}
	return true
}

// ask posts a call and, if the mailbox is closed, runs it at once with alive false.
func (m *mailbox) ask(c call) {
	if !m.post(c) {
		c(false)
	}
}

// close refuses further calls. It is called from within a call; those that wait already still run, with alive false.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *mailbox) take(spare []call) (calls []call, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, m.waiting = m.waiting, spare[:0]
	if len(calls) == 0 {
		m.running = false
	}
	return calls, !m.closed
}

func (m *mailbox) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func (m *mailbox) run() {
	var spare []call
	for {
		calls, alive := m.take(spare)
		if len(calls) == 0 {
			return
		}
		for i, c := range calls {
			c(alive)
			calls[i] = nil
			alive = alive && !m.isClosed()
		}
		if alive {
			m.settle()
		}
		spare = calls
	}
}
