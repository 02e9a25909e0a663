package server

import (
	"net/http"
	"strings"
	"testing"
)

// What a request to HTTP can hold is bounded: its header, the time to send it and the time to take the answer.
func TestWebLimits(t *testing.T) {
	s := start(t, load(t))
	if s.http.ReadTimeout <= 0 || s.http.WriteTimeout <= 0 {
		t.Errorf("timeouts: read %v, write %v", s.http.ReadTimeout, s.http.WriteTimeout)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.WebURL()+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Padding", strings.Repeat("x", 16<<10))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 16 KiB: %s", answer.Status)
	}
}
