package admin

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ledElsewhere leads nothing.
type ledElsewhere struct {
	fakeTransactions
	leader ElsewhereError
}

func (l *ledElsewhere) Describe(context.Context, txn.ID) (Transaction, error) {
	return Transaction{}, &l.leader
}

// Who came with TLS is sent on with TLS, because his credentials go along.
func TestSentElsewhere(t *testing.T) {
	const plain, encrypted = "http://other:8080", "https://other:8443"
	for _, test := range []struct {
		leader  ElsewhereError
		withTLS bool
		want    string
	}{
		{ElsewhereError{WebURL: plain, WebURLTLS: encrypted}, false, plain},
		{ElsewhereError{WebURL: plain, WebURLTLS: encrypted}, true, encrypted},
		{ElsewhereError{WebURLTLS: encrypted}, false, encrypted},
		{ElsewhereError{WebURL: plain}, true, plain},
	} {
		request := httptest.NewRequest(http.MethodGet, listPath+"/0/1", nil)
		if test.withTLS {
			request.TLS = &tls.ConnectionState{}
		}
		answer := httptest.NewRecorder()
		newHandler(&ledElsewhere{leader: test.leader}).ServeHTTP(answer, request)
		if at := answer.Header().Get("Location"); answer.Code != http.StatusTemporaryRedirect || at != test.want+listPath+"/0/1" {
			t.Errorf("%+v, TLS %v: %d to %q", test.leader, test.withTLS, answer.Code, at)
		}
	}
}
