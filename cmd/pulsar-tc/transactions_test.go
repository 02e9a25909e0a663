package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
	"github.com/pulsar-tc/pulsar-tc/internal/tokentest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/server"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// start runs a whole server on free ports of loopback.
func start(t *testing.T, set ...string) *server.Server {
	t.Helper()
	config, _, err := conf.Load(conf.Sources{Set: append([]string{"dataDir=" + t.TempDir(), "brokerServicePort=0", "webServicePort=0"}, set...)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Options{Config: config, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run executes one command line.
func run(args ...string) (stdout string, code int, err error) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err = root.Execute()
	if err == nil {
		return out.String(), 0, nil
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return out.String(), exit.code, err
	}
	return out.String(), 1, err
}

func open(t *testing.T, s *server.Server, participants ...string) txn.ID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := wireclient.DialTC(ctx, s.ServiceURL(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id, err := client.Begin(ctx, 0, 60_000, "the-name")
	if err != nil {
		t.Fatal(err)
	}
	if len(participants) > 0 {
		if _, err := client.Call(ctx, wireclient.AddPartitions(id, participants...)); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func TestEndTellsTheOutcomeByExitCode(t *testing.T) {
	s := start(t)
	id := open(t, s)
	end := func(id txn.ID, action string) (string, int) {
		out, code, _ := run("transactions", "end", "--service-url", s.ServiceURL(), "--txn-id", id.String(), "--action", action)
		return out, code
	}
	for i := range 3 {
		if out, code := end(id, "commit"); code != 0 || !strings.Contains(out, "COMMITTED") {
			t.Errorf("commit %d: code %d, %q", i, code, out)
		}
		if _, code := end(id, "abort"); code != exitContrary {
			t.Errorf("abort %d after commit: code %d, want %d", i, code, exitContrary)
		}
	}
	if _, code := end(txn.ID{Most: 0, Least: 7}, "commit"); code != exitNotFound {
		t.Errorf("unknown id: code %d, want %d", code, exitNotFound)
	}
	if _, code := end(id, "perhaps"); code != 1 {
		t.Errorf("unknown action: code %d, want 1", code)
	}
	if _, code := end(txn.ID{Most: 99, Least: 7}, "commit"); code != 1 {
		t.Errorf("unknown coordinator: code %d, want 1", code)
	}
}

// A service URL may name several hosts, as that of a client may. One that is down is passed over.
func TestEndAtAnyHost(t *testing.T) {
	s := start(t)
	id := open(t, s)
	hosts := loopback.Address(t) + "," + strings.TrimPrefix(s.ServiceURL(), "pulsar://")
	if out, code, err := run("transactions", "end", "--service-url", "pulsar://"+hosts, "--txn-id", id.String(), "--action", "commit"); code != 0 {
		t.Errorf("code %d, %v\n%s", code, err, out)
	}
	none := "pulsar://" + loopback.Address(t) + "," + loopback.Address(t)
	if _, code, err := run("transactions", "end", "--service-url", none, "--txn-id", id.String(), "--action", "commit"); code != 1 || err == nil {
		t.Errorf("nobody there: code %d, %v", code, err)
	}
}

func TestListAndDescribe(t *testing.T) {
	s := start(t)
	const topic = "persistent://public/default/described"
	id := open(t, s, topic)
	out, code, err := run("transactions", "list", "--admin-url", s.WebURL())
	if code != 0 || !strings.Contains(out, id.String()) || !strings.Contains(out, "the-name") || !strings.Contains(out, "OPEN") {
		t.Errorf("list: code %d, %v\n%s", code, err, out)
	}
	for _, hidden := range [][]string{{"--older-than", "1h"}, {"--state", "ABORTING"}, {"--client-name", "another"}} {
		out, code, err := run(append([]string{"transactions", "list", "--admin-url", s.WebURL()}, hidden...)...)
		if code != 0 || strings.Contains(out, id.String()) {
			t.Errorf("list %v: code %d, %v\n%s", hidden, code, err, out)
		}
	}
	if _, code, _ := run("transactions", "list", "--admin-url", s.WebURL(), "--state", "NONE"); code != 1 {
		t.Errorf("list of an unknown state: code %d, want 1", code)
	}
	out, _, err = run("transactions", "describe", id.String(), "--admin-url", s.WebURL(), "--json")
	var live admin.Transaction
	if err := errors.Join(err, json.Unmarshal([]byte(out), &live)); err != nil {
		t.Fatal(err)
	}
	if live.State != "OPEN" || live.ClientName != "the-name" || len(live.Participants) != 1 ||
		live.Participants[0].Topic != topic || live.Participants[0].State != "registered" || live.EndedAt != nil {
		t.Errorf("live: %+v", live)
	}
	if _, code, err := run("transactions", "end", "--service-url", s.ServiceURL(), "--txn-id", id.String(), "--action", "abort"); code != 0 {
		t.Fatal(err)
	}
	out, code, err = run("transactions", "describe", id.String(), "--admin-url", s.WebURL())
	if code != 0 || !strings.Contains(out, "ABORTED") || !strings.Contains(out, "ended") {
		t.Errorf("ended: code %d, %v\n%s", code, err, out)
	}
	if _, code, _ := run("transactions", "describe", "(0,7)", "--admin-url", s.WebURL()); code != exitNotFound {
		t.Errorf("describe an unknown id: code %d, want %d", code, exitNotFound)
	}
}

// The commands work where the server demands a token, over TLS and in the clear, and say what is missing where it is.
func TestCredentials(t *testing.T) {
	authority := certtest.NewAuthority(t)
	files := certtest.Write(t, authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), authority)
	s := start(t, "brokerServicePortTls=0", "webServicePortTls=0", "tlsCertificateFilePath="+files.Certificate, "tlsKeyFilePath="+files.Key,
		"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderToken", "authorizationEnabled=true", "superUserRoles=admin",
		tokentest.Setting())
	tokenFile := func(role string) string {
		file := filepath.Join(t.TempDir(), role)
		if err := os.WriteFile(file, []byte(tokentest.Sign(t, role, time.Now().Add(time.Hour))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	trust, admin, stranger := "--tls-trust-certs="+files.Trust, "--token-file="+tokenFile("admin"), "--token-file="+tokenFile("stranger")
	for _, test := range []struct {
		url   string // of the web service or of the binary port
		flags []string
		want  string // part of the error; empty: the server answers as it does for an id that it does not know
	}{
		{s.WebURL(), []string{admin}, ""},
		{s.WebURLTLS(), []string{admin, trust}, ""},
		{s.ServiceURL(), []string{admin}, ""},
		{s.ServiceURLTLS(), []string{admin, trust}, ""},
		{s.WebURL(), nil, "401 Unauthorized: Authentication required"},
		{s.ServiceURL(), nil, "Authentication required"},
		{s.WebURL(), []string{stranger}, "403 Forbidden: "},
		{s.WebURLTLS(), []string{admin}, "unknown authority"},
		{s.ServiceURLTLS(), []string{admin}, "unknown authority"},
		{s.WebURLTLS(), []string{admin, "--tls-trust-certs=" + files.Key}, "no certificate in PEM"},
		{s.ServiceURL(), []string{"--token-file=" + files.Key + ".none"}, "--token-file: "},
	} {
		arguments := []string{"transactions", "describe", "(0,7)", "--admin-url", test.url}
		if strings.HasPrefix(test.url, "pulsar") {
			arguments = []string{"transactions", "end", "--txn-id=(0,7)", "--action=abort", "--service-url", test.url}
		}
		_, code, err := run(append(arguments, test.flags...)...)
		if test.want == "" && code != exitNotFound {
			t.Errorf("%s %v: code %d, %v", test.url, test.flags, code, err)
		}
		if test.want != "" && (code != 1 || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %v: code %d, %v, want %q", test.url, test.flags, code, err, test.want)
		}
	}
}

// O-4: only a decided transaction has a participant that an operator can declare done.
func TestResolveRefusesAnOpenTransaction(t *testing.T) {
	s := start(t)
	const topic = "persistent://public/default/resolved"
	id := open(t, s, topic)
	_, code, err := run("transactions", "resolve", id.String(), "--participant", topic, "--admin-url", s.WebURL())
	if code != 1 || err == nil || !strings.Contains(err.Error(), "OPEN") {
		t.Errorf("resolve: code %d, %v", code, err)
	}
}

func TestListRefusesALimitThatIsNone(t *testing.T) {
	s := start(t)
	open(t, s)
	for _, limit := range []string{"-1", "0", "10001"} {
		if out, code, err := run("transactions", "list", "--admin-url", s.WebURL(), "--limit", limit); err == nil || code != 1 || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: %q, %d, %v", limit, out, code, err)
		}
	}
}

// Why no decision can be stored is told where nothing else says what a transaction waits for.
func TestListAndDescribeTellWhyATransactionIsHeld(t *testing.T) {
	const held = `{"id": "(0,1)", "state": "OPEN", "reason": "the store is full", "participants": [{"topic": "t", "state": "registered"}]}`
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
			_, _ = w.Write([]byte(`{}`))
		case "/pulsar-tc/v1/transactions":
			_, _ = w.Write([]byte("[" + held + "]"))
		default:
			_, _ = w.Write([]byte(held))
		}
	}))
	defer asked.Close()
	for _, command := range [][]string{{"list"}, {"describe", "(0,1)"}} {
		out, code, err := run(append(append([]string{"transactions"}, command...), "--admin-url", asked.URL)...)
		if code != 0 || !strings.Contains(out, "the store is full") {
			t.Errorf("%v: code %d, %v\n%s", command, code, err, out)
		}
	}
}
