package topic

import "github.com/pulsar-tc/pulsar-tc/topic/ledger"

// keyHolders tells which keys of a Key_Shared subscription have messages that are with a consumer, or in a transaction, and
// not acknowledged. Nobody else is given messages of such a key, so that those of one key are worked on in order, also when
// the key goes to another consumer and when a transaction aborts. A consumer that goes leaves what its transactions hold to
// nobody: until they end, the key waits.
//
// Source: PIP-379 (draining hashes); that pending acknowledgements hold a key is ours.
type keyHolders struct {
	keys    map[waitKey]keyHolder
	pending map[ledger.Position]waitKey // entries that transactions hold
}

type keyHolder struct {
	by      *consumer // nil: transactions alone
	entries int
}

func newKeyHolders() keyHolders {
	return keyHolders{make(map[waitKey]keyHolder), make(map[ledger.Position]waitKey)}
}

// add notes one more entry of key with c.
func (h *keyHolders) add(key waitKey, c *consumer) {
	holder, found := h.keys[key]
	if !found {
		holder.by = c
	}
	holder.entries++
	h.keys[key] = holder
}

// pend notes that what was added for p is in a transaction now. It reports false if another part of p was before: then that
// stands for both, and what was added is to be released.
func (h *keyHolders) pend(p ledger.Position, key waitKey) bool {
	if _, known := h.pending[p]; known {
		return false
	}
	h.pending[p] = key
	return true
}

// found adds an entry that a transaction holds and nobody had, as after a load.
func (h *keyHolders) found(p ledger.Position, key waitKey) {
	if h.pend(p, key) {
		h.add(key, nil)
	}
}

// release takes back one entry of key. It reports whether none is left.
func (h *keyHolders) release(key waitKey) (free bool) {
	holder := h.keys[key]
	if holder.entries--; holder.entries > 0 {
		h.keys[key] = holder
		return false
	}
	delete(h.keys, key)
	return true
}

// leave notes that c is gone.
func (h *keyHolders) leave(c *consumer) {
	for key, holder := range h.keys {
		if holder.by == c {
			holder.by = nil
			h.keys[key] = holder
		}
	}
}

// blocks reports whether c must not be given messages of key now.
func (h *keyHolders) blocks(key waitKey, c *consumer) bool {
	holder, found := h.keys[key]
	return found && holder.by != c
}
