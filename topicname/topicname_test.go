package topicname

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"orders":                                     "persistent://public/default/orders",
		"t/n/orders":                                 "persistent://t/n/orders",
		"persistent://t/n/orders":                    "persistent://t/n/orders",
		"non-persistent://t/n/a b":                   "non-persistent://t/n/a b",
		"segment://t/n/topic/0000-ffff-1":            "segment://t/n/topic/0000-ffff-1",
		"persistent://t/n/orders-partition-12":       "persistent://t/n/orders-partition-12",
		"persistent://te-nant_1/n=s:p.a/non-ascii ä": "persistent://te-nant_1/n=s:p.a/non-ascii ä",
	} {
		got, err := Parse(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "t/orders", "a/b/c/d", "foo://t/n/x", "persistent://t/n", "persistent://t/n/", "persistent://t/n/  ",
		"persistent://t/c/n/x", "persistent:///n/x", "persistent://t x/n/y", "persistent://t/n/a\x00b", "persistent://t/n/a\nb",
		"persistent://t/n/" + strings.Repeat("x", MaxBytes),
		"segment://t/n/topic", "segment://t/n/topic/0000-ffff", "segment://t/n/topic/0-ffff-1", "segment://t/n/topic/0000-FFFF-1",
		"segment://t/n/topic/ffff-0000-1", "segment://t/n/a/b/0000-ffff-1", "segment://t/n/topic/0000-ffff--1",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestPartitions(t *testing.T) {
	for text, want := range map[string]int{
		"x-partition-0": 0, "x-partition-31": 31, "x": -1, "x-partition-": -1, "x-partition-01": -1, "x-partition--1": -1,
		"-partition-1": -1, "x-partition-99999999999999999999": -1, "a-partition-1-partition-2": 2,
	} {
		n, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n.Partition() != want {
			t.Errorf("%q: partition %d, want %d", text, n.Partition(), want)
		}
		if want >= 0 && n.Base().WithPartition(want) != n {
			t.Errorf("%q is not partition %d of %v", text, want, n.Base())
		}
	}
}

// As observed on 4.0.7: the log prefix counts in pulsar/system only, the pending-ack suffix everywhere.
func TestTransactionInternal(t *testing.T) {
	for text, want := range map[string]bool{
		"pulsar/system/transaction_coordinator_assign":              true,
		"pulsar/system/transaction_coordinator_assign-partition-99": true,
		"pulsar/system/__transaction_log_7":                         true,
		"pulsar/system/__terminated_txn_state_0":                    true,
		"public/default/t-s__transaction_pending_ack":               true,
		"public/default/__transaction_log_0":                        false,
		"pulsar/system/anything":                                    false,
		"public/default/transaction_coordinator_assign":             false,
	} {
		n, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n.TransactionInternal() != want {
			t.Errorf("%s: %t, want %t", n, n.TransactionInternal(), want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"x", "persistent://t/n/x-partition-3", "segment://a/b/c/d", "foo://", "a/b/c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(n.String())
		if err != nil || again != n {
			t.Errorf("%q is %q, which is %q, %v", text, n, again, err)
		}
	})
}
