package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/internal/tokentest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// newGuarded starts a server that knows roles by their tokens. The test itself is admin, the super user; alice, bob and
// proxy, which speaks for others, may produce and consume.
func newGuarded(t *testing.T, set ...string) *fixture {
	t.Helper()
	f := newStopped(t, binaries.Ordinary(t), append([]string{
		"authenticationEnabled=true", "authorizationEnabled=true", "superUserRoles=admin", "proxyRoles=proxy",
		"authenticationProviders=AuthenticationProviderToken", "authenticationRefreshCheckSeconds=4",
		tokentest.Setting(),
	}, set...)...)
	f.token = tokentest.Sign(t, "admin", time.Now().Add(time.Hour))
	f.Start()
	for _, role := range []string{"alice", "bob", "proxy"} {
		f.mustRest(http.MethodPost, "namespaces/public/default/permissions/"+role, `["produce","consume"]`)
	}
	return f
}

// as connects in the name of a role; principal, if not empty, is whom it speaks for.
func (f *fixture) as(role, principal string) *wiretopic.Client {
	f.Helper()
	connect := &pulsarproto.CommandConnect{
		AuthMethodName: proto.String("token"), AuthData: []byte(tokentest.Sign(f.T, role, time.Now().Add(time.Hour))),
	}
	if principal != "" {
		connect.OriginalPrincipal = &principal
	}
	client, err := f.tryDial(connect, nil)
	if err != nil {
		f.Fatalf("%s for %q: %v", role, principal, err)
	}
	f.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	return client
}

// stranger tries everything that a transaction which is not its own is open to, and hears what it would hear of one that
// never was.
func (f *fixture) stranger(who string, client *wiretopic.Client, id txn.ID, name string) {
	f.Helper()
	none := txn.ID{Most: id.Most, Least: id.Least + 1<<40}
	for what, try := range map[string]func(id txn.ID) error{
		"ADD_PARTITION": func(id txn.ID) error {
			_, err := client.Call(f.ctx, wireclient.AddPartitions(id, topic("t")))
			return err
		},
		"ADD_SUBSCRIPTION": func(id txn.ID) error {
			_, err := client.Call(f.ctx, wireclient.AddSubscription(id, topic("t"), "s"))
			return err
		},
		"COMMIT":             func(id txn.ID) error { return client.End(f.ctx, id, txn.Commit, "") },
		"ABORT":              func(id txn.ID) error { return client.End(f.ctx, id, txn.Abort, "") },
		"COMMIT by its name": func(id txn.ID) error { return client.End(f.ctx, id, txn.Commit, name) },
	} {
		got, want := try(id), try(none)
		f.want(who+": "+what, got, pulsarproto.ServerError_TransactionNotFound)
		if strings.ReplaceAll(got.Error(), id.String(), "") != strings.ReplaceAll(want.Error(), none.String(), "") {
			f.Errorf("%s: %s: told %q, and %q of a transaction that never was", who, what, got, want)
		}
	}
}

// FC-36: only its owner and super users end a transaction, through a proxy too, before a restart and behind it, and what is kept of its
// end is nobody else's either.
func TestFC36ForeignTransaction(t *testing.T) {
	f := newGuarded(t)
	const name = "alice's"
	var open, proxied, toAbort txn.ID
	begin := func() txn.ID {
		t.Helper()
		alice := f.as("alice", "")
		id := f.begin(alice, longTTL, name)
		_, err := alice.Call(f.ctx, wireclient.AddPartitions(id, topic("t")))
		f.want("ADD", err, success)
		return id
	}
	for restart := range 2 {
		if restart == 0 {
			open, proxied, toAbort = begin(), begin(), begin()
		} else { // those that were opened before it
			f.Kill()
			f.Start()
		}
		bob, proxyForBob := f.as("bob", ""), f.as("proxy", "bob")
		f.stranger("bob", bob, open, name)
		f.stranger("bob through the proxy", proxyForBob, open, name)
		if restart == 0 {
			continue
		}
		f.end(f.as("alice", ""), open, txn.Commit, success)
		f.end(f.as("proxy", "alice"), proxied, txn.Commit, success)
		f.end(f.dial(), toAbort, txn.Abort, success)
		for _, id := range []txn.ID{open, proxied, toAbort} {
			f.stranger("bob behind the end", bob, id, name)
			f.stranger("bob through the proxy behind the end", proxyForBob, id, name)
		}
	}
	f.Kill()
	f.Start()
	f.stranger("bob behind the second restart", f.as("bob", ""), open, name)
	f.want("alice repeats", f.as("alice", "").End(f.ctx, open, txn.Commit, name), success)
	f.want("alice repeats through the proxy", f.as("proxy", "alice").End(f.ctx, open, txn.Commit, name), success)
	f.end(f.dial(), toAbort, txn.Abort, success)
}

// expiring is a connection of alice whose token ends soon, with an open transaction.
type expiring struct {
	*fixture
	client     *wiretopic.Client
	producer   *wiretopic.Producer
	ends       time.Time
	id         txn.ID
	challenges chan struct{}
}

// tokenTime is for how long the first token is good; tokens know whole seconds.
const tokenTime = 10 * time.Second

func newExpiring(f *fixture, refreshes bool) *expiring {
	f.Helper()
	e := &expiring{fixture: f, ends: time.Now().Add(tokenTime).Truncate(time.Second), challenges: make(chan struct{}, 100)}
	connect := &pulsarproto.CommandConnect{AuthMethodName: proto.String("token"), AuthData: []byte(tokentest.Sign(f.T, "alice", e.ends))}
	if refreshes {
		connect.FeatureFlags = &pulsarproto.FeatureFlags{SupportsAuthRefresh: proto.Bool(true)}
	}
	var err error
	e.client, err = f.tryDial(connect, func(command *pulsarproto.BaseCommand) {
		if command.GetType() == pulsarproto.BaseCommand_AUTH_CHALLENGE {
			e.challenges <- struct{}{}
		}
	})
	f.want("CONNECT", err, success)
	e.producer = f.produce(e.client, topic("t"))
	e.id = f.begin(e.client, 2*time.Minute, "")
	f.send(e.producer, "m1", &e.id)
	f.send(e.producer, "m2", &e.id)
	return e
}

// respond answers the next challenge with a token.
func (e *expiring) respond(token string) {
	e.Helper()
	select {
	case <-e.challenges:
	case <-e.client.Done():
		e.Fatal("closed without a challenge")
	case <-e.ctx.Done():
		e.Fatal("no challenge")
	}
	err := e.client.Write(&pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_AUTH_RESPONSE.Enum(),
		AuthResponse: &pulsarproto.CommandAuthResponse{
			Response: &pulsarproto.AuthData{AuthMethodName: proto.String("token"), AuthData: []byte(token)},
		},
	})
	if err != nil {
		e.Fatal(err)
	}
}

// workTo sends until the connection ends, or past the end of the token, and reports whether it goes on. Nothing that is
// sent behind the end of the credentials may succeed.
func (e *expiring) workTo(renewed bool) (alive bool) {
	e.Helper()
	for past := e.ends.Add(time.Second); time.Now().Before(past); {
		started := time.Now()
		if _, err := e.producer.Send(e.ctx, "plain", nil); err != nil {
			<-e.client.Done()
			return false
		}
		if !renewed && started.After(e.ends) {
			e.Fatalf("a message was taken %v after the end of the token", started.Sub(e.ends))
		}
	}
	return true
}

// finish ends the transaction on new connections: bob's is refused, alice's goes on with it.
func (e *expiring) finish() {
	e.Helper()
	e.want("bob", e.as("bob", "").End(e.ctx, e.id, txn.Commit, ""), pulsarproto.ServerError_TransactionNotFound)
	alice := e.as("alice", "")
	e.send(e.produce(alice, topic("t")), "m3", &e.id)
	e.end(alice, e.id, txn.Commit, success)
	got := map[string]int{}
	for _, content := range e.contents(topic("t")) {
		got[content]++
	}
	if got["m1"] != 1 || got["m2"] != 1 || got["m3"] != 1 {
		e.Errorf("the topic holds %v", got)
	}
}

// FC-37: a connection ends with its credentials and leaves its transactions open; one that answers the challenge goes on.
func TestFC37CredentialsExpire(t *testing.T) {
	for name, c := range map[string]struct {
		refreshes bool
		answer    func(e *expiring)
		goesOn    bool
	}{
		"without refresh": {false, func(*expiring) {}, false},
		"valid answer": {true, func(e *expiring) {
			e.respond(tokentest.Sign(e.T, "alice", time.Now().Add(time.Hour)))
		}, true},
		"expired answer": {true, func(e *expiring) {
			e.respond(tokentest.Sign(e.T, "alice", time.Now().Add(-time.Hour)))
		}, false},
		"answer of another role": {true, func(e *expiring) {
			e.respond(tokentest.Sign(e.T, "bob", time.Now().Add(time.Hour)))
		}, false},
		"no answer": {true, func(*expiring) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExpiring(newGuarded(t), c.refreshes)
			c.answer(e)
			if alive := e.workTo(c.goesOn); alive != c.goesOn {
				t.Fatalf("the connection goes on: %v", alive)
			}
			e.finish()
		})
	}
}

// FC-36: without authentication everybody ends every transaction, by its id.
func TestFC36WithoutAuthentication(t *testing.T) {
	f := newFixture(t)
	id := f.begin(f.dial(), longTTL, "alice's")
	f.send(f.produce(f.dial(), topic("t")), "m1", &id)
	f.end(f.dial(), id, txn.Commit, success)
	f.holds(topic("t"), "m1")
}
