package topic

import "github.com/pulsar-tc/pulsar-tc/topic/ledger"

// keyHolders tells which keys of a Key_Shared subscription have messages that are with a consumer, or in a transaction, and
// not acknowledged. Nobody else is given messages of such a key, so that those of one key are worked on in order, also when
// the key goes to another consumer and when a transaction aborts. What the transactions of a consumer hold that is gone, or
// that nobody knows after a load, belongs to nobody: until they end, the key waits.
//
// Source: PIP-379 (draining hashes); that pending acknowledgements hold a key is ours.
type keyHolders struct {
	keys    map[waitKey]keyHolder
	pending map[ledger.Position]pendingKey // entries that transactions hold
}

type keyHolder struct {
	by      *consumer
	entries int
	left    int // of entries: they belong to nobody
}

type pendingKey struct {
	key waitKey
	by  *consumer // nil: nobody
}

func newKeyHolders() keyHolders {
	return keyHolders{make(map[waitKey]keyHolder), make(map[ledger.Position]pendingKey)}
}

// add notes one more entry of key with c.
func (h *keyHolders) add(key waitKey, c *consumer) {
	holder := h.keys[key]
	holder.by = c
	holder.entries++
	h.keys[key] = holder
}

// pend notes that an entry that c had is in a transaction now. It reports false if another part of it was before: then that
// stands for both, and what was added is to be released.
func (h *keyHolders) pend(p ledger.Position, key waitKey, c *consumer) bool {
	if _, known := h.pending[p]; known {
		return false
	}
	h.pending[p] = pendingKey{key, c}
	return true
}

// found adds an entry of which a transaction holds all or a part, unless the consumer that has the key has the rest of it.
// Otherwise nobody had it since the load.
func (h *keyHolders) found(p ledger.Position, key waitKey) {
	holder := h.keys[key]
	if holder.by != nil {
		if _, has := holder.by.unacked[p]; has {
			return
		}
	}
	if h.pend(p, key, nil) {
		holder.entries++
		holder.left++
		h.keys[key] = holder
	}
}

// ended takes back what was pended for p, or found. It reports false if nothing was.
func (h *keyHolders) ended(p ledger.Position) (key waitKey, known bool) {
	was, known := h.pending[p]
	if !known {
		return 0, false
	}
	delete(h.pending, p)
	if was.by == nil {
		holder := h.keys[was.key]
		holder.left--
		h.keys[was.key] = holder
	}
	h.release(was.key)
	return was.key, true
}

// release takes back one entry of key.
func (h *keyHolders) release(key waitKey) {
	holder := h.keys[key]
	if holder.entries--; holder.entries > 0 {
		h.keys[key] = holder
		return
	}
	delete(h.keys, key)
}

// leave notes that c is gone, and what it had released.
func (h *keyHolders) leave(c *consumer) {
	for p, was := range h.pending {
		if was.by == c {
			h.pending[p] = pendingKey{was.key, nil}
			holder := h.keys[was.key]
			holder.left++
			h.keys[was.key] = holder
		}
	}
}

// blocks reports whether c must not be given messages of key now.
func (h *keyHolders) blocks(key waitKey, c *consumer) bool {
	holder, found := h.keys[key]
	return found && (holder.left > 0 || holder.by != c)
}
