package topic

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// MaxNameBytes bounds the name of a producer, a subscription or a consumer, in bytes of UTF-8. Each is stored or kept in memory
// with whatever it names.
const MaxNameBytes = 1024

// checkLength refuses a name that is too long. field is what the command calls it. Errors: txn.ErrNotAllowed.
func checkLength(field, name string) error {
	if len(name) > MaxNameBytes {
		return fmt.Errorf("%w: %s of %d bytes, at most %d", txn.ErrNotAllowed, field, len(name), MaxNameBytes)
	}
	return nil
}
