package faults

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// metrics fetches the metrics page in the format of a media type.
func (f *fixture) metrics(media string) string {
	f.Helper()
	asked, err := http.NewRequestWithContext(f.ctx, http.MethodGet, f.Server.WebURL+"/metrics", nil)
	if err != nil {
		f.Fatal(err)
	}
	asked.Header.Set("Accept", media)
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		f.Fatalf("/metrics: %s, %v", response.Status, err)
	}
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, media) {
		f.Errorf("asked for %s, got %s", media, got)
	}
	return string(page)
}

// strict reads a page as a strict parser does: of each name one TYPE and one HELP, before its samples, which are together; every
// series once. It returns the series.
//
// Source: the exposition formats of Prometheus and OpenMetrics.
func strict(page string) (series map[string]bool, err error) {
	series = map[string]bool{}
	told, family := map[string]bool{}, ""
	lines := bufio.NewScanner(strings.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		words := strings.SplitN(line, " ", 4)
		switch {
		case line == "# EOF":
			return series, nil
		case len(words) == 4 && words[0] == "#" && (words[1] == "TYPE" || words[1] == "HELP" || words[1] == "UNIT"):
			if told[words[1]+words[2]] {
				return nil, fmt.Errorf("a second time: %s", line)
			}
			told[words[1]+words[2]], family = true, words[2]
		default:
			end := strings.LastIndexByte(line, ' ')
			if strings.Contains(line, " # ") || end < 0 {
				return nil, fmt.Errorf("no sample: %s", line)
			}
			if !isSample(line, family) || series[line[:end]] {
				return nil, fmt.Errorf("not among the samples of its name, or twice: %s", line)
			}
			series[line[:end]] = true
		}
	}
	return series, lines.Err()
}

// isSample reports whether a line is a sample of a metric family.
func isSample(line, family string) bool {
	rest, ok := strings.CutPrefix(line, family)
	if !ok {
		return false
	}
	for _, suffix := range []string{"_total", "_created", "_bucket", "_sum", "_count"} {
		if below, has := strings.CutPrefix(rest, suffix); has {
			rest = below
			break
		}
	}
	return rest != "" && (rest[0] == '{' || rest[0] == ' ')
}

// pages requires that both formats of the page are as a strict parser wants them, and returns the number of series.
func (f *fixture) pages() int {
	f.Helper()
	text := f.metrics("text/plain")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		f.Errorf("text: %v", err)
	}
	series, err := strict(text)
	if err != nil {
		f.Errorf("text: %v", err)
	}
	open := f.metrics("application/openmetrics-text")
	if _, err := strict(open); err != nil || !strings.HasSuffix(open, "\n# EOF\n") {
		f.Errorf("OpenMetrics: %v, ends with %q", err, open[max(0, len(open)-20):])
	}
	return len(series)
}

// FC-54: whatever tenants' namespaces, topics, subscriptions, clients and roles are called, a strict parser takes the page, in both
// formats, after a restart and idle; names that clients choose freely make no series.
func TestFC54MetricsPage(t *testing.T) {
	odd := []string{`quote"`, `back\slash`, "brace}", `{a="b"} 1`, "ünïcode"}
	f := newGuarded(t, "initialNumTransactionCoordinators=4", "exposeTopicLevelMetricsInPrometheus=true")
	client := f.dial()
	for i, text := range odd {
		namespace := fmt.Sprint("public/n", i)
		f.mustRest(http.MethodPut, "namespaces/"+namespace, "")
		full := "persistent://" + namespace + "/" + text
		f.subscribe(client, full, text+"\n\\\"")
		for tc := range uint64(4) {
			id, err := client.Begin(f.ctx, tc, uint64(longTTL.Milliseconds()), text)
			f.want("NEW_TXN", err, success)
			f.send(f.produce(client, full), "m", &id)
			f.want("END_TXN", client.End(f.ctx, id, txn.Action(tc%2), text), success)
		}
	}
	before := f.pages()
	for i := range 100 {
		name := fmt.Sprintf("client \"%d\"", i)
		id := f.begin(client, longTTL, name)
		f.want("END_TXN", client.End(f.ctx, id, txn.Commit, name), success)
	}
	for i, text := range odd {
		role := f.as(fmt.Sprintf("%s%d\n", text, i), "")
		if _, err := role.Begin(f.ctx, 0, 1000, text); codeOf(err) == noAnswer {
			t.Errorf("role %q: %v", text, err)
		}
	}
	if after := f.pages(); after > before+len(odd) {
		t.Errorf("%d series became %d by names that clients choose", before, after)
	}
	f.Kill()
	f.Start()
	f.pages()
}
