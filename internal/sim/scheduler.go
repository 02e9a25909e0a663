package sim

import (
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// event is something that waits to happen at its time. run is called by the scheduler's goroutine and must not block.
type event struct {
	due   time.Time
	label string
	run   func()
}

// events is a heap by time; at one time, by label.
type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if !e[i].due.Equal(e[j].due) {
		return e[i].due.Before(e[j].due)
	}
	return e[i].label < e[j].label
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}

// scheduler lets one event happen at a time, in order of their virtual times, and waits between any two until nothing in the
// bubble can go on by itself. The delays are drawn from the seed by label, so that the order is the seed's.
type scheduler struct {
	chance chance
	began  time.Time
	wake   chan struct{} // holds a token when an event was added

	verbose bool
	hash    uint64
	count   int
	trace   []string

	mu     sync.Mutex // guards the following
	queue  events
	labels map[string]int // how often each was used
	alike  map[string]int // in which round the labels of requests were used last
	round  int            // events and timers so far
	staged []staged
}

// staged is something to do as soon as nothing can go on by itself.
type staged struct {
	source string
	do     func()
}

func newScheduler(c chance, verbose bool) *scheduler {
	return &scheduler{chance: c, began: time.Now(), wake: make(chan struct{}, 1), verbose: verbose, labels: map[string]int{}, alike: map[string]int{}}
}

// unique makes labels that are used again differ.
func (s *scheduler) unique(label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.labels[label]
	s.labels[label] = n + 1
	if n == 0 {
		return label
	}
	return label + "#" + strconv.Itoa(n)
}

// uniqueUnlessAtOnce is unique, but gives what is named alike at one moment one label: it shares its fate, as there is no order.
func (s *scheduler) uniqueUnlessAtOnce(label string) string {
	s.mu.Lock()
	before, used := s.alike[label]
	s.alike[label] = s.round
	if used && before == s.round {
		s.labels[label]--
	}
	s.mu.Unlock()
	return s.unique(label)
}

// at adds an event. The nanoseconds are drawn, so that hardly two events share a time.
func (s *scheduler) at(due time.Time, label string, run func()) {
	s.post(due.Add(time.Duration(s.chance.draw("ns", label)%1000)), label, run)
}

// post adds an event at exactly its time.
func (s *scheduler) post(due time.Time, label string, run func()) {
	s.mu.Lock()
	heap.Push(&s.queue, &event{due, label, run})
	s.mu.Unlock()
	s.ring()
}

// after is at for a delay from now.
func (s *scheduler) after(d time.Duration, label string, run func()) {
	s.at(time.Now().Add(d), label, run)
}

// stage has something done as soon as nothing can go on by itself: in the order of the sources, for each in the order of the
// calls. So what several goroutines do at once has one order.
func (s *scheduler) stage(source string, do func()) {
	s.mu.Lock()
	s.staged = append(s.staged, staged{source, do})
	s.mu.Unlock()
	s.ring()
}

func (s *scheduler) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// perform does what is staged.
func (s *scheduler) perform() {
	s.mu.Lock()
	all := s.staged
	s.staged = nil
	s.round++
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b staged) int { return strings.Compare(a.source, b.source) })
	for _, next := range all {
		next.do()
	}
}

// run releases events until over is true. It is called from the bubble's first goroutine.
func (s *scheduler) run(over func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		synctest.Wait()
		if over() {
			return
		}
		s.perform()
		next, wait := s.next()
		if next != nil {
			s.release(next)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// next takes the event that is due, or says how long to wait for one.
func (s *scheduler) next() (*event, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, time.Hour
	}
	if wait := time.Until(s.queue[0].due); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&s.queue).(*event), 0
}

func (s *scheduler) release(e *event) {
	s.count++
	s.note(e.label)
	e.run()
}

// note puts a line into the trace.
func (s *scheduler) note(line string) {
	const prime = 1099511628211
	at := time.Since(s.began)
	h := (s.hash ^ uint64(at)) * prime
	for i := 0; i < len(line); i++ {
		h = (h ^ uint64(line[i])) * prime
	}
	s.hash = mixed(h)
	if s.verbose {
		s.trace = append(s.trace, fmt.Sprintf("%14.9f %s", at.Seconds(), line))
	}
}
