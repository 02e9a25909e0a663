package peer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
)

// A request of HTTP arrives as it is, in the name of its caller; nobody gets in with a greeting to somebody else.
func TestWeb(t *testing.T) {
	alice := cnx.Caller{Role: "alice", Known: true}
	here := Door{Self: "b", Secret: testSecret}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, is, err := here.AdmitRequest(r)
		if err != nil || !is {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || caller != alice || r.RequestURI != "/a%2Fb?force=true" || r.Method != http.MethodPut ||
			string(body) != "7" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %q by %+v, %v", r.Method, r.RequestURI, body, caller, err)
		}
		w.Header().Set("Location", "http://elsewhere/")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = w.Write([]byte("moved"))
	}))
	t.Cleanup(server.Close)
	pool := newPool(t, nil)
	request := WebRequest{http.MethodPut, "/a%2Fb?force=true", "application/json", "7"}
	to := cluster.Instance{ID: "b", WebURL: server.URL}
	if status, body, err := pool.Web(t.Context(), to, alice, request); err != nil || status != http.StatusTemporaryRedirect || string(body) != "moved" {
		t.Errorf("%d %q %v", status, body, err)
	}
	to.ID = "c"
	if status, _, err := pool.Web(t.Context(), to, alice, request); err != nil || status != http.StatusUnauthorized {
		t.Errorf("another instance has the address: %d, %v", status, err)
	}
	if _, _, err := pool.Web(t.Context(), cluster.Instance{ID: "b"}, alice, request); err == nil {
		t.Error("no port, and no error")
	}
	plain, err := http.Get(server.URL)
	if err != nil || plain.StatusCode != http.StatusUnauthorized {
		t.Errorf("a client: %v, %v", plain, err)
	}
	_ = plain.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}
