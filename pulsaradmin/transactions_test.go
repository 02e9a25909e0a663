package pulsaradmin

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// oneTransaction is a coordinator with one transaction, of role app.
type oneTransaction struct{ unreachable }

func (oneTransaction) Count() uint64 { return 1 }

func (oneTransaction) Describe(_ context.Context, id txn.ID) (Transaction, error) {
	switch id.Least {
	case 1:
		return Transaction{ID: id, Status: txn.Open, Owner: "app"}, nil
	case 2:
		return Transaction{ID: id, Status: txn.Open}, nil
	}
	return Transaction{}, &txn.NotFoundError{ID: id}
}

// TC-27: a transaction is shown to super users and to who opened it. Nobody else learns whether it exists.
func TestTransactionOfOthers(t *testing.T) {
	h := guarded(t)
	h.Transactions = oneTransaction{}
	path := func(least int) string { return fmt.Sprintf("/admin/v3/transactions/transactionMetadata/0/%d", least) }
	for _, test := range []struct {
		role  string
		least int
		want  int
	}{
		{"root", 1, http.StatusOK},
		{"root", 2, http.StatusOK},
		{"root", 3, http.StatusNotFound},
		{"app", 1, http.StatusOK},
		{"app", 2, http.StatusUnauthorized},
		{"app", 3, http.StatusUnauthorized},
		{"other", 1, http.StatusUnauthorized},
		{"other", 3, http.StatusUnauthorized},
		{"", 1, http.StatusUnauthorized},
	} {
		if answer := h.try("GET", path(test.least), test.role, ""); answer.Code != test.want {
			t.Errorf("transaction %d for %q: %d %s, want %d", test.least, test.role, answer.Code, answer.Body, test.want)
		}
	}
	existing, missing := h.try("GET", path(1), "other", ""), h.try("GET", path(3), "other", "")
	if existing.Body.String() != missing.Body.String() {
		t.Errorf("a refusal tells what exists: %s, %s", existing.Body, missing.Body)
	}
}
