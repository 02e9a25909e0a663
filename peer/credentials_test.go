package peer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestParseCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const plugins = "org.apache.pulsar.client.impl.auth."
	for _, test := range []struct {
		plugin, parameters string
		method, data       string
		fault              string // part of the error
	}{
		{"", "", "", "", ""},
		{plugins + "AuthenticationDisabled", "", "", "", ""},
		{plugins + "AuthenticationToken", "token:secret", "token", "secret", ""},
		{"AuthenticationToken", "secret", "token", "secret", ""},
		{"AuthenticationToken", "file://" + file, "token", "from a file", ""},
		{"AuthenticationToken", "", "", "", "brokerClientAuthenticationParameters"},
		{plugins + "AuthenticationTls", "tlsCertFile:/c.pem, tlsKeyFile:/k.pem", "tls", "", ""},
		{"AuthenticationTls", "tlsCertFile:/c.pem", "", "", "tlsKeyFile"},
		{"AuthenticationBasic", `{"userId":"u","password":"p"}`, "basic", "u:p", ""},
		{"AuthenticationBasic", "u:p4ssw0rd", "", "", "userId"},
		{"AuthenticationSasl", "", "", "", "brokerClientAuthenticationPlugin"},
	} {
		c, err := ParseCredentials(test.plugin, test.parameters)
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "p4ssw0rd") {
				t.Errorf("%+v: error %v", test, err)
			}
			continue
		}
		connect, dataErr := c.Connect("1")
		if err != nil || dataErr != nil || connect.GetAuthMethodName() != test.method || string(connect.GetAuthData()) != test.data {
			t.Errorf("%+v: %q %q, %v, %v", test, connect.GetAuthMethodName(), connect.GetAuthData(), err, dataErr)
		}
		if c.None() != (test.method == "") {
			t.Errorf("%+v: none %t", test, c.None())
		}
	}
}

// A challenge is answered with the credentials as they are by then.
func TestAuthChallenge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	credentials, err := ParseCredentials("AuthenticationToken", "file://"+file)
	if err != nil {
		t.Fatal(err)
	}
	other, responses := newInstance(t, "b"), make(chan *pulsarproto.CommandAuthResponse, 1)
	other.serve = func(d *door, command *pulsarproto.BaseCommand) {
		if command.GetType() == pulsarproto.BaseCommand_AUTH_RESPONSE {
			responses <- command.GetAuthResponse()
			return
		}
		write("second")
		d.send(pulsarproto.AppendAuthChallenge(nil, "pulsar-tc test", "token", 21))
		_ = answer(d, command, nil, "")
	}
	pool, ended := newPool(t, func(o *Options) { o.Credentials = credentials }), make(chan error, 1)
	pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{}, txn.Abort, true, func(err error) { ended <- err })
	if got := wait(t, responses).GetResponse(); got.GetAuthMethodName() != "token" || string(got.GetAuthData()) != "second" {
		t.Errorf("answered with %v", got)
	}
	if err := wait(t, ended); err != nil {
		t.Error(err)
	}
	if got := string(other.connections()[0].connect.GetAuthData()); got != "first" {
		t.Errorf("connected with %q", got)
	}
}

func TestSecretIsShared(t *testing.T) {
	store := etcdtest.Open(t, nil)
	first, err := OpenSecret(t.Context(), store.Client(), etcdtest.Space)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenSecret(t.Context(), store.Client(), etcdtest.Space)
	if err != nil || string(second) != string(first) || len(first) != secretBytes {
		t.Errorf("%x, then %x, %v", first, second, err)
	}
	if _, err := store.Client().Put(t.Context(), etcdtest.Space.PeerSecret(), "no hex"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSecret(t.Context(), store.Client(), etcdtest.Space); err == nil || strings.Contains(err.Error(), "no hex") {
		t.Errorf("damaged: %v", err)
	}
}

// No claim gets in without the proof for this very instance.
func TestDoor(t *testing.T) {
	here := Door{Self: "b", Secret: testSecret}
	hello := func(secret Secret, to string) *pulsarproto.CommandConnect {
		greeting, err := secret.greet("a", to, cnx.Caller{Role: "root", Super: true})
		if err != nil {
			t.Fatal(err)
		}
		method := greetingMethod
		return &pulsarproto.CommandConnect{OriginalAuthMethod: &method, OriginalAuthData: &greeting}
	}
	if caller, is, err := here.Admit(hello(testSecret, "b")); err != nil || !is || caller.Role != "root" {
		t.Errorf("an instance: %+v %t %v", caller, is, err)
	}
	if _, is, err := here.Admit(&pulsarproto.CommandConnect{}); err != nil || is {
		t.Errorf("a client: %t %v", is, err)
	}
	garbage := hello(testSecret, "b")
	*garbage.OriginalAuthData = "{"
	for name, connect := range map[string]*pulsarproto.CommandConnect{
		"another secret": hello(Secret("another"), "b"), "for another instance": hello(testSecret, "c"), "garbage": garbage,
	} {
		if _, is, err := here.Admit(connect); err == nil || is {
			t.Errorf("%s is let in", name)
		}
	}
}

func FuzzDoor(f *testing.F) {
	greeting, err := testSecret.greet("a", "b", cnx.Caller{Role: "r"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(greeting)
	f.Add(`{"proof":"00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		method := greetingMethod
		_, is, err := Door{Self: "other", Secret: testSecret}.Admit(&pulsarproto.CommandConnect{OriginalAuthMethod: &method, OriginalAuthData: &text})
		if is || err == nil {
			t.Errorf("%q is let in", text)
		}
	})
}
