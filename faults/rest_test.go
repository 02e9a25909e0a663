package faults

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// rest asks Pulsar's admin REST and returns the status of the answer. body is JSON, or empty.
func (f *fixture) rest(method, path, body string) int {
	f.Helper()
	status, err := f.tryRest(method, path, body)
	if err != nil {
		f.Errorf("%s %s: %v", method, path, err)
	}
	return status
}

// tryRest is rest that leaves it to the caller what a missing answer means.
func (f *fixture) tryRest(method, path, body string) (status int, err error) {
	asked, err := http.NewRequestWithContext(f.ctx, method, f.Server.WebURL+"/admin/v2/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	asked.Header.Set("Content-Type", "application/json")
	f.authorize(asked)
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// mustRest is rest that requires success.
func (f *fixture) mustRest(method, path, body string) {
	f.Helper()
	if status := f.rest(method, path, body); status/100 != 2 {
		f.Fatalf("%s %s: %d", method, path, status)
	}
}

// restPath is the path of a full topic name.
func restPath(topic string) string { return strings.Replace(topic, "://", "/", 1) }

// exists reports whether a topic of namespace exists. That of a namespace that does not is no topic.
func (f *fixture) exists(namespace, topic string) bool {
	f.Helper()
	response, err := http.Get(f.Server.WebURL + "/admin/v2/persistent/" + namespace)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return false
	}
	var topics []string
	if err := json.NewDecoder(response.Body).Decode(&topics); err != nil {
		f.Fatalf("topics of %s: %s, %v", namespace, response.Status, err)
	}
	return slices.Contains(topics, topic)
}

// compact compacts a topic and waits for the end.
func (f *fixture) compact(topic string) {
	f.Helper()
	f.mustRest(http.MethodPut, restPath(topic)+"/compaction", "")
	f.await("the compaction is done", func() bool {
		var status struct{ Status, LastError string }
		f.get("/admin/v2/"+restPath(topic)+"/compaction", &status)
		if status.Status == "ERROR" {
			f.Fatalf("compaction: %s", status.LastError)
		}
		return status.Status == "SUCCESS"
	})
}
