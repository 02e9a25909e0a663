package server

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// resolutions notes who resolves.
type resolutions struct {
	admin.Transactions
	operator string
}

func (r *resolutions) Resolve(_ context.Context, _ txn.ID, _ txn.Participant, operator string) error {
	r.operator = operator
	return nil
}

// Who declares a participant done is recorded as the role that he proved, whatever he says (O-4, audited). Where nobody proves anything
// his word is all there is.
func TestOperatorIsTheRole(t *testing.T) {
	for _, test := range []struct {
		name, body, want string
		server           *Server
	}{
		{"authenticated", `{"topic":"x","operator":"somebody else"}`, "admin", newFortress(t).Server},
		{"authenticated, says nothing", `{"topic":"x"}`, "admin", newFortress(t).Server},
		{"no authentication", `{"topic":"x","operator":"me"}`, "me", start(t, load(t))},
	} {
		noted := &resolutions{}
		handler := test.server.operatorsOnly(admin.New(noted, test.server.health, http.NotFoundHandler(), zerolog.Nop()))
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pulsar-tc/v1/transactions/0/1/resolve", strings.NewReader(test.body))
		request.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("admin:123456")))
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusNoContent || noted.operator != test.want {
			t.Errorf("%s: %d %s, recorded %q, want %q", test.name, answer.Code, answer.Body, noted.operator, test.want)
		}
	}
}
