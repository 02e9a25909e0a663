package conn

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Every code that the protocol has is reached by an error that carries it; those of package txn by their own rows.
func TestServerErrorWalksEveryCode(t *testing.T) {
	for number, name := range pulsarproto.ServerError_name {
		code := pulsarproto.ServerError(number)
		err := fmt.Errorf("store: %w", cnx.Refuse(code, name))
		got, text := serverError(err, true)
		if got != code || text != "store: "+name {
			t.Errorf("%s: code %s, text %q", name, got, text)
		}
	}
	if got := len(pulsarproto.ServerError_name); got != 27 {
		t.Errorf("%d codes, the table below was written for 27", got)
	}
}

func TestServerErrorOfTxnErrors(t *testing.T) {
	_, badName := topicname.Parse("foo://a/b/c")
	id := txn.ID{Most: 1, Least: 2}
	for _, test := range []struct {
		err  error
		want pulsarproto.ServerError
	}{
		{errors.New("unheard of"), 0},
		{txn.ErrNotReady, 6},
		{context.Canceled, 6},
		{context.DeadlineExceeded, 6},
		{txn.ErrUnsupportedVersion, 10},
		{txn.ErrTooManyRequests, 14},
		{txn.ErrInvalidTopicName, 17},
		{badName, 17},
		{txn.ErrCoordinatorNotFound, 20},
		{&txn.StatusError{ID: id, Want: txn.Open, Got: txn.Committed}, 21},
		{txn.ErrNotAllowed, 22},
		{txn.ErrConflict, 23},
		{&txn.NotFoundError{ID: id}, 24},
		{txn.ErrPreserverClosed, 26},
		// An error that means two things is the one that the table has first.
		{errors.Join(txn.ErrNotReady, txn.ErrPreserverClosed), 26},
	} {
		for _, err := range []error{test.err, fmt.Errorf("end (1,2): %w", test.err)} {
			code, text := serverError(err, true)
			if code != test.want || text != err.Error() {
				t.Errorf("%v: code %s, text %q; want %s", err, code, text, test.want)
			}
		}
	}
}

// P-3: only a request with a client name gets 26.
func TestServerErrorP3(t *testing.T) {
	for _, err := range []error{
		txn.ErrPreserverClosed,
		cnx.Refuse(pulsarproto.ServerError_TransactionPreserverClosed, "closed"),
	} {
		if code, _ := serverError(err, false); code != pulsarproto.ServerError_ServiceNotReady {
			t.Errorf("%v: code %s without a client name", err, code)
		}
		if code, _ := serverError(err, true); code != pulsarproto.ServerError_TransactionPreserverClosed {
			t.Errorf("%v: code %s with a client name", err, code)
		}
	}
}

func TestServerErrorTextIsNeverEmpty(t *testing.T) {
	if _, text := serverError(cnx.Refuse(pulsarproto.ServerError_PersistenceError, ""), false); text != "PersistenceError" {
		t.Errorf("text %q", text)
	}
}
