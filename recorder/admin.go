package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// adminClient follows no redirect: it would be an answer of its own.
var adminClient = &http.Client{
	Timeout:       40 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirect") },
}

// adminAnswer is an answer of the admin REST. Code 0 means that there was none, body says why.
type adminAnswer struct {
	code              int
	contentType, body string
	took              time.Duration
}

// object is the body as a JSON object; nil if it is none.
func (a adminAnswer) object() map[string]any {
	var object map[string]any
	if json.Unmarshal([]byte(a.body), &object) != nil {
		return nil
	}
	return object
}

func (r *recording) admin(method, path, body string) adminAnswer {
	started := time.Now()
	request, err := http.NewRequest(method, r.target.WebURL+path, strings.NewReader(body))
	if err != nil {
		return adminAnswer{body: err.Error()}
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := adminClient.Do(request)
	if err != nil {
		return adminAnswer{body: err.Error(), took: time.Since(started)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		text = append(text, err.Error()...)
	}
	return adminAnswer{response.StatusCode, response.Header.Get("Content-Type"), string(text), time.Since(started)}
}

// rest records an answer of the admin REST: code, content type, and the shape of its JSON.
func (r *recording) rest(step, method, path, body string) adminAnswer {
	a := r.admin(method, path, body)
	text := fmt.Sprintf("HTTP %d", a.code)
	if a.contentType != "" {
		text += " " + a.contentType
	}
	r.line(step, method+" "+r.adminPath(path), text+" "+bodyText(a)+seconds(a.took))
	return a
}

var positionInPath = regexp.MustCompile(`(/s)/\d+/\d+$`)

// adminPath is path with names in place of ids and positions.
func (r *recording) adminPath(path string) string {
	for least, name := range r.names {
		path = regexp.MustCompile(fmt.Sprintf(`/%d\b`, least)).ReplaceAllString(path, "/"+name)
	}
	return positionInPath.ReplaceAllString(path, "${1}/L/E")
}

func bodyText(a adminAnswer) string {
	var value any
	switch {
	case a.body == "":
		return "empty"
	case json.Unmarshal([]byte(a.body), &value) != nil && len(a.body) > 200:
		return fmt.Sprintf("body=%q", a.body[:200]+"...")
	case value == nil:
		return fmt.Sprintf("body=%q", a.body)
	}
	text := shape(value)
	object := a.object()
	if reason := object["reason"]; reason != nil {
		text += fmt.Sprintf(" reason=%q", firstLine(fmt.Sprint(reason)))
	}
	if status := object["status"]; status != nil {
		text += fmt.Sprintf(" status=%v", status)
	}
	return text
}

// firstLine is the message of a Java exception, or the first line of any other text.
func firstLine(reason string) string {
	if at := strings.Index(reason, "Message: "); at >= 0 {
		reason = reason[at:]
	}
	line, _, more := strings.Cut(reason, "\n")
	if more {
		return line + " ..."
	}
	return line
}

var idKey = regexp.MustCompile(`^\(?\d+(,\d+\))?$`)

// shape is a JSON value with types in place of values.
func shape(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "num"
	case string:
		return "str"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shape(v[0]) + "]"
	case map[string]any:
		return objectShape(v)
	}
	return "?"
}

// objectShape shows keys of equal shape once.
func objectShape(object map[string]any) string {
	seen := map[string]bool{}
	var entries []string
	for key, value := range object {
		switch {
		case idKey.MatchString(key):
			key = "<id>"
		case strings.HasPrefix(key, "persistent://"):
			key = "<topic>"
		}
		entry := key + ":" + shape(value)
		if !seen[entry] {
			seen[entry] = true
			entries = append(entries, entry)
		}
	}
	sort.Strings(entries)
	return "{" + strings.Join(entries, ",") + "}"
}

// adminState is the state of a transaction by the admin REST, or the code of its refusal.
func (r *recording) adminState(id txn.ID) string {
	a := r.admin("GET", fmt.Sprintf("/admin/v3/transactions/transactionMetadata/%d/%d", id.Most, id.Least), "")
	if a.code == http.StatusOK {
		return fmt.Sprint(a.object()["status"])
	}
	return fmt.Sprint("HTTP ", a.code)
}

// state records adminState.
func (r *recording) state(step string, id txn.ID) {
	r.line(step, "admin state of "+r.txnName(&id), r.adminState(id))
}

// restName is a topic as the admin REST names it in a path.
func restName(topic string) string { return strings.TrimPrefix(topic, "persistent://") }

// entries records how many entries the log of a topic has.
func (r *recording) entries(step, topic string) {
	count := r.admin("GET", "/admin/v2/persistent/"+restName(topic)+"/internalStats", "").object()["numberOfEntries"]
	if count == nil {
		count = "?"
	}
	r.line(step, "entries in the topic's log (admin)", fmt.Sprint(count))
}

// unload unloads a topic.
func (r *recording) unload(topic string) adminAnswer {
	return r.admin("PUT", "/admin/v2/persistent/"+restName(topic)+"/unload", "")
}
