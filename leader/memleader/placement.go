package memleader

// Place says who is to lead every coordinator. Others wait while it is not nil.
func (e *Election) Place(c *Contender) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.place = c
	for _, seat := range e.seats {
		if seat.term != nil && !e.mine(seat.term.owner) {
			seat.term.leadElsewhere()
		}
	}
	close(e.placed)
	e.placed = make(chan struct{})
}

// mine reports whether c is to lead. The caller holds mu.
func (e *Election) mine(c *Contender) bool { return e.place == nil || e.place == c }

// Expected reports whether c is to lead; see coordinator.Leader.
func (c *Contender) Expected(uint64) bool {
	c.election.mu.Lock()
	defer c.election.mu.Unlock()
	return c.election.mine(c)
}

// leadElsewhere closes elsewhere once. The caller holds mu.
func (t *Term) leadElsewhere() {
	select {
	case <-t.elsewhere:
	default:
		close(t.elsewhere)
	}
}

// Elsewhere is closed when another process is to lead; see coordinator.Term.
func (t *Term) Elsewhere() <-chan struct{} { return t.elsewhere }
