package pulsaradmin

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// oddNames are what a local name may be.
var oddNames = []string{"a b", "a+b", "a%b", "a%2Fb", "%ff", "%", "ä", "a;b?c#d", "a:b@c"}

// asked notes which subscription of which topic is deleted.
type asked struct {
	Topics
	topic, subscription string
}

func (a *asked) PartitionedMetadata(context.Context, topicname.Name) (int, map[string]string, error) {
	return 0, nil, nil
}

func (a *asked) DeleteSubscription(_ context.Context, name topicname.Name, subscription string, _ bool) error {
	a.topic, a.subscription = name.Local, subscription
	return nil
}

// A name that a list shows reaches its topic when it is escaped as Pulsar's clients escape it, and as a path is escaped. A
// subscription's is escaped by the Java client once, by the Go client twice.
func TestNamesInPaths(t *testing.T) {
	h := guarded(t)
	topics := &asked{}
	h.Topics = topics
	same := func(once string) string { return once }
	for _, name := range oddNames {
		for what, escape := range map[string]struct{ topic, subscription, again func(string) string }{
			"Java": {url.QueryEscape, url.QueryEscape, same},
			"Go":   {url.PathEscape, url.PathEscape, url.PathEscape},
		} {
			if what == "Go" && name == "a+b" { // a space for Pulsar, too
				continue
			}
			path := "/admin/v2/persistent/public/default/" + escape.topic(name) + "/subscription/" + escape.again(escape.subscription(name))
			answer := h.try("DELETE", path, "root", "")
			subscription := name
			if what == "Java" && name == "a%2Fb" { // looks escaped twice
				subscription = "a/b"
			}
			if answer.Code != http.StatusNoContent || topics.topic != name || topics.subscription != subscription {
				t.Errorf("%s, %q: %s: %d %s, topic %q, subscription %q", what, name, path, answer.Code, answer.Body, topics.topic, topics.subscription)
			}
		}
	}
}

// far is another instance, which serves everything.
type far struct {
	others
	target string
}

type others interface{ Instances }

func (f *far) Find(string) (cluster.Instance, bool) { return cluster.Instance{}, true }

func (f *far) AdmitRequest(*http.Request) (cnx.Caller, bool, error) { return cnx.Caller{}, false, nil }

func (f *far) Web(_ context.Context, _ cluster.Instance, _ cnx.Caller, request peer.WebRequest) (int, []byte, error) {
	f.target = request.Target
	return http.StatusNoContent, nil, nil
}

// elsewhere has one topic of two partitions.
type elsewhere struct{ asked }

func (e *elsewhere) PartitionedMetadata(context.Context, topicname.Name) (int, map[string]string, error) {
	return 2, nil, nil
}

func (e *elsewhere) DeleteSubscription(context.Context, topicname.Name, string, bool) error {
	return &topic.NotOwnerError{Owner: "other"}
}

// What is passed on to another instance reaches the same topic there.
func TestNamesPassedOn(t *testing.T) {
	h, there := guarded(t), guarded(t)
	other := &far{}
	h.Topics, h.Instances = &elsewhere{}, other
	topics := &asked{}
	there.Topics = topics
	for _, name := range oddNames {
		if answer := h.try("DELETE", "/admin/v2/persistent/public/default/"+url.QueryEscape(name)+"/subscription/s", "root", ""); answer.Code != http.StatusNoContent {
			t.Errorf("%q: %d %s", name, answer.Code, answer.Body)
		}
		answer := there.try("DELETE", other.target, "root", "")
		if answer.Code != http.StatusNoContent || topics.topic != name+"-partition-1" || topics.subscription != "s" {
			t.Errorf("%q: %s: %d %s, topic %q", name, other.target, answer.Code, answer.Body, topics.topic)
		}
	}
}

// New topics have names that lists can show, and none that transactions reserve. Nothing else is asked for them.
func TestNamesOfNewTopics(t *testing.T) {
	h := guarded(t)
	for path, want := range map[string]int{
		"/admin/v2/persistent/public/default/a%ffb":                         http.StatusPreconditionFailed,
		"/admin/v2/persistent/public/default/x__transaction_pending_ack":    http.StatusBadRequest,
		"/admin/v2/persistent/pulsar/system/__transaction_log_0":            http.StatusBadRequest,
		"/admin/v2/persistent/pulsar/system/transaction_coordinator_assign": http.StatusBadRequest,
		"/admin/v2/persistent/pulsar/system/__terminated_txn_state_0":       http.StatusBadRequest,
		"/admin/v2/non-persistent/public/default/%ff":                       http.StatusPreconditionFailed,
		"/admin/v2/persistent/public/nowhere/x":                             http.StatusNotFound,
	} {
		for below, body := range map[string]string{"": "", "/partitions": "3"} {
			if answer := h.try("PUT", path+below, "root", body); answer.Code != want {
				t.Errorf("%s%s: %d %s, want %d", path, below, answer.Code, answer.Body, want)
			}
		}
	}
}
