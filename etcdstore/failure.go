package etcdstore

import "sync"

// failure is the first reason for which the server cannot go on.
type failure struct {
	once     sync.Once
	err      error         // written before happened is closed, never afterwards
	happened chan struct{} // closed by the first set
	reason   chan error    // holds err for one reader
}

func newFailure() *failure {
	return &failure{happened: make(chan struct{}), reason: make(chan error, 1)}
}

func (f *failure) set(err error) {
	f.once.Do(func() {
		f.err = err
		f.reason <- err
		close(f.happened)
	})
}

// get returns nil as long as nothing failed.
func (f *failure) get() error {
	select {
	case <-f.happened:
		return f.err
	default:
		return nil
	}
}
