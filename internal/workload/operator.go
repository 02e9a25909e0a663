package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// listLive asks which transactions have not ended.
func (l *Load) listLive(ctx context.Context) (live []admin.Transaction, err error) {
	status, err := l.get(ctx, "", &live)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("list of transactions: status %d", status)
	}
	return live, err
}

// look asks how a transaction is, as an operator does, and records the answer if it is a definite one.
func (l *Load) look(ctx context.Context, id txn.ID) error {
	call := l.history.Now()
	var found admin.Transaction
	status, err := l.get(ctx, fmt.Sprintf("/%d/%d", id.Most, id.Least), &found)
	if err != nil {
		return err
	}
	seen := history.Look{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, Known: status == http.StatusOK}
	if !seen.Known && status != http.StatusNotFound {
		return fmt.Errorf("transaction %s: status %d", id, status)
	}
	for _, s := range []txn.Status{txn.Open, txn.Committing, txn.Committed, txn.Aborting, txn.Aborted} {
		if s.String() == found.State {
			seen.Status = s
		}
	}
	l.history.Saw(seen)
	return nil
}

// get asks for something below the path of the transactions.
func (l *Load) get(ctx context.Context, below string, into any) (status int, err error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, l.webURL()+"/pulsar-tc/v1/transactions"+below, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(into)
}
