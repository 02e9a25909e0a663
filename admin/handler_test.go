package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// fakeTransactions lists as many as are asked for, after list.
type fakeTransactions struct {
	have int
	list func()
}

func (f *fakeTransactions) List(_ context.Context, filter Filter) ([]Transaction, error) {
	if f.list != nil {
		f.list()
	}
	all := make([]Transaction, min(f.have, filter.Limit))
	for i := range all {
		all[i] = Transaction{ID: fmt.Sprintf("(0,%d)", i), State: "OPEN"}
	}
	return all, nil
}

func (f *fakeTransactions) Describe(context.Context, txn.ID) (Transaction, error) {
	return Transaction{}, nil
}

func (f *fakeTransactions) Resolve(context.Context, txn.ID, txn.Participant, string) error {
	return nil
}

func newHandler(transactions Transactions) http.Handler {
	return New(transactions, func() Health { return Health{Healthy: true} }, http.NotFoundHandler(), zerolog.Nop())
}

func ask(handler http.Handler, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}

const listPath = "/pulsar-tc/v1/transactions"

// A list is a JSON array of at most limit transactions; a limit out of range is refused with the rule.
func TestListLimit(t *testing.T) {
	handler := newHandler(&fakeTransactions{have: 20_000})
	for query, want := range map[string]int{"": 1000, "?limit=1": 1, "?limit=10000": 10_000} {
		answer := ask(handler, listPath+query)
		var listed []Transaction
		if err := json.Unmarshal(answer.Body.Bytes(), &listed); err != nil || len(listed) != want {
			t.Errorf("%q: %d transactions, %v, want %d", query, len(listed), err, want)
			continue
		}
		if last := fmt.Sprintf("(0,%d)", want-1); listed[want-1].ID != last {
			t.Errorf("%q: the last is %s, want %s", query, listed[want-1].ID, last)
		}
	}
	for _, limit := range []string{"0", "-1", "10001", "1000000", "99999999999999999999", "x"} {
		answer := ask(handler, listPath+"?limit="+limit)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "from 1 to 10000") {
			t.Errorf("limit %s: %d %s", limit, answer.Code, answer.Body)
		}
	}
}

func TestEmptyList(t *testing.T) {
	if got := ask(newHandler(&fakeTransactions{}), listPath).Body.String(); got != "[]\n" {
		t.Errorf("%q", got)
	}
}

// Beyond maxRequests at once a request is refused; health is answered all the same.
func TestConcurrentRequests(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, maxRequests)
	handler := newHandler(&fakeTransactions{list: func() {
		entered <- struct{}{}
		<-release
	}})
	var all sync.WaitGroup
	for range maxRequests {
		all.Go(func() {
			if code := ask(handler, listPath).Code; code != http.StatusOK {
				t.Errorf("a request within the bound: %d", code)
			}
		})
	}
	for range maxRequests {
		<-entered
	}
	if code := ask(handler, "/metrics").Code; code != http.StatusServiceUnavailable {
		t.Errorf("a request beyond the bound: %d", code)
	}
	if code := ask(handler, "/health").Code; code != http.StatusOK {
		t.Errorf("health: %d", code)
	}
	close(release)
	all.Wait()
	if code := ask(handler, listPath+"/0/1").Code; code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}
