package conn

import (
	"sync"
	"time"
)

// maxLines is how many lines about the faults of peers are logged in one second: whoever can connect can cause them.
const maxLines = 10

// lineLimit lets maxLines lines through in each second and counts the others. The zero value is ready for use.
type lineLimit struct {
	mu      sync.Mutex // guards everything below
	second  time.Time  // when the second began that lines belong to
	lines   int
	skipped uint64
}

// next reports whether a line is to be logged; skipped is how many were not since the last one that was.
func (l *lineLimit) next() (skipped uint64, logged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines == maxLines {
		l.skipped++
		return 0, false
	}
	l.lines++
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
