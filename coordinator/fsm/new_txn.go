package fsm

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// newTxn opens a transaction. Source: MLTransactionMetadataStore.newTransaction; TC-11, TC-25, P-4, P-26 for what is refused.
func (m *Machine) newTxn(now int64, c *NewTxn) {
	key := preserver.Key{Owner: c.Owner, Name: c.ClientName}
	ttl, err := m.admit(now, c, key)
	if err != nil {
		m.reply(c.To, txn.ID{Most: m.opts.TC}, err)
		return
	}
	least := m.issued + 1
	m.reserve(least)
	t := m.append(txn.Change{Record: txn.Record{
		Op: txn.OpNew, Least: least, Owner: c.Owner, ClientName: c.ClientName,
		StartTime: now, TimeoutMillis: ttl, Time: now,
	}})
	m.link(t)
	m.arm(t)
	m.reply(c.To, m.id(least), nil)
}

// reserve makes the bound of ids that may have been used larger than n, in the batch that uses n.
func (m *Machine) reserve(n uint64) {
	if n >= m.reserved {
		m.reserved = n + idBlock
		m.ready.Batch.Next = m.reserved
	}
}

// admit checks a NEW and returns its ttl in milliseconds.
func (m *Machine) admit(now int64, c *NewTxn, key preserver.Key) (uint64, error) {
	longest := uint64(math.MaxInt64 - max(now, 0))
	if m.opts.MaxTTLMillis > 0 {
		longest = min(longest, m.opts.MaxTTLMillis)
	}
	switch {
	case c.TTLMillis == 0:
		return 0, fmt.Errorf("%w: txn_ttl_seconds (milliseconds) is 0 or absent, want 1 to %d", txn.ErrNotAllowed, longest)
	case c.TTLMillis > longest:
		return 0, fmt.Errorf("%w: txn_ttl_seconds (milliseconds) is %d, transactionMaxTtlMs allows %d",
			txn.ErrNotAllowed, c.TTLMillis, longest)
	}
	if c.Named {
		if err := checkClientName(c.ClientName); err != nil {
			return 0, err
		}
	}
	switch {
	case m.space != SpaceNormal:
		return 0, fmt.Errorf("%w: the store is nearly full, new transactions are refused until there is space", txn.ErrNotReady)
	case m.opts.MaxActive > 0 && len(m.live) >= m.opts.MaxActive:
		return 0, fmt.Errorf("%w: maxActiveTransactionsPerCoordinator=%d is reached", txn.ErrTooManyRequests, m.opts.MaxActive)
	case !m.outcomes.Admits(key):
		return 0, fmt.Errorf("%w: this role has used %d client names in this coordinator, transactionMaxNamesPerOwner allows no more",
			txn.ErrNotAllowed, m.opts.Preserver.NamesPerOwner)
	}
	return max(c.TTLMillis, minTTLMillis), nil
}

// maxClientName is in bytes (P-4).
const maxClientName = 255

func checkClientName(name string) error {
	rule := ""
	switch {
	case len(name) > maxClientName:
		return fmt.Errorf("%w: client_name has %d bytes, want 1 to %d", txn.ErrNotAllowed, len(name), maxClientName)
	case !utf8.ValidString(name):
		rule = "it is not UTF-8"
	case strings.TrimSpace(name) == "":
		rule = "it is blank"
	case strings.ContainsFunc(name, unicode.IsControl):
		rule = "it has control characters"
	default:
		return nil
	}
	return fmt.Errorf("%w: client_name %q: %s", txn.ErrNotAllowed, name, rule)
}
