package server

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/tokentest"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// fortress is a server with every way to authenticate. Role admin is the super user, and has the password 123456; writer may
// produce and reader consume in public/default; the anonymous role is called anonymous and has no rights.
type fortress struct {
	*Server
	authority *certtest.Authority
	files     certtest.Files
}

func newFortress(t *testing.T, set ...string) *fortress {
	t.Helper()
	f := &fortress{authority: certtest.NewAuthority(t)}
	f.files = certtest.Write(t, f.authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), f.authority)
	const htpasswd = "admin:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs="
	f.Server = start(t, load(t, append([]string{
		"brokerServicePortTls=0", "webServicePortTls=0",
		"tlsCertificateFilePath=" + f.files.Certificate, "tlsKeyFilePath=" + f.files.Key, "tlsTrustCertsFilePath=" + f.files.Trust,
		"authenticationEnabled=true", "authorizationEnabled=true", "superUserRoles=admin", "anonymousUserRole=anonymous",
		"authenticationProviders=AuthenticationProviderTls,AuthenticationProviderToken,AuthenticationProviderBasic",
		tokentest.Setting(),
		"basicAuthConf=data:;base64," + base64.StdEncoding.EncodeToString([]byte(htpasswd)),
	}, set...)...))
	err := f.resources.UpdateNamespace(t.Context(), "public/default", func(d resources.Document) error {
		return d.Set("auth_policies", map[string]any{
			"namespace_auth": map[string][]string{"writer": {"produce"}, "reader": {"consume"}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pairFiles writes the certificate of a client.
func pairFiles(t *testing.T, authority *certtest.Authority, name string, until time.Time) (certificate, key string) {
	t.Helper()
	files := certtest.Write(t, authority.Sign(t, name, until), authority)
	return files.Certificate, files.Key
}

// The stock Go client, by every way in: what its role may do it does, what it may not is refused.
func TestWaysIn(t *testing.T) {
	f := newFortress(t)
	soon := time.Now().Add(time.Hour)
	byCertificate := func(name string) pulsar.Authentication {
		certificate, key := pairFiles(t, f.authority, name, soon)
		return pulsar.NewAuthenticationTLS(certificate, key)
	}
	byPassword := func(password string) pulsar.Authentication {
		basic, err := pulsar.NewAuthenticationBasic("admin", password)
		if err != nil {
			t.Fatal(err)
		}
		return basic
	}
	foreignCertificate, foreignKey := pairFiles(t, certtest.NewAuthority(t), "admin", soon)
	const denied, refused = "AuthorizationError", "connection error" // the client tries to log in again until its timeout
	for _, test := range []struct {
		name    string
		options pulsar.ClientOptions
		tls     bool
		produce string // part of the error; empty: it works
		consume string
	}{
		{"token of a writer", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "writer", soon))}, false, "", denied},
		{"token of a reader", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "reader", soon))}, true, denied, ""},
		{"token of the super user", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "admin", soon))}, false, "", ""},
		{"token of a stranger", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "stranger", soon))}, false, denied, denied},
		{"password", pulsar.ClientOptions{Authentication: byPassword("123456")}, false, "", ""},
		{"password over TLS", pulsar.ClientOptions{Authentication: byPassword("123456")}, true, "", ""},
		{"certificate of a writer", pulsar.ClientOptions{Authentication: byCertificate("writer")}, true, "", denied},
		{"certificate of the super user", pulsar.ClientOptions{Authentication: byCertificate("admin")}, true, "", ""},
		{"nobody", pulsar.ClientOptions{}, false, denied, denied},
		{"nobody over TLS", pulsar.ClientOptions{}, true, denied, denied},
		{"expired token", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "admin", time.Now().Add(-time.Minute)))}, false, refused, refused},
		{"forged token", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "admin", soon)[:60] + ".e30.x")}, false, refused, refused},
		{"wrong password", pulsar.ClientOptions{Authentication: byPassword("1234567")}, false, refused, refused},
		{"certificate of another authority", pulsar.ClientOptions{Authentication: pulsar.NewAuthenticationTLS(foreignCertificate, foreignKey)}, true, refused, refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := test.options
			options.URL = f.ServiceURL()
			if test.tls {
				options.URL, options.TLSTrustCertsFilePath, options.TLSValidateHostname = f.ServiceURLTLS(), f.files.Trust, true
			}
			if test.produce == refused {
				options.OperationTimeout = time.Second
			}
			options.Logger = pulsarlog.DefaultNopLogger()
			client, err := pulsar.NewClient(options)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			topic := "persistent://public/default/" + strings.ReplaceAll(test.name, " ", "-")
			_, err = client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
			checkOutcome(t, "produce", err, test.produce)
			_, err = client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
			checkOutcome(t, "consume", err, test.consume)
		})
	}
}

func checkOutcome(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// A transaction over TLS: the lookup tells the TLS address, and the role writes in it.
func TestTransactionOverTLS(t *testing.T) {
	f := newFortress(t, "brokerServicePort=-1", "webServicePort=-1")
	if f.ServiceURL() != "" || f.WebURL() != "" || len(f.URLs()) != 2 {
		t.Errorf("addresses %v", f.URLs())
	}
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: f.ServiceURLTLS(), TLSTrustCertsFilePath: f.files.Trust, TLSValidateHostname: true, EnableTransaction: true,
		Authentication: pulsar.NewAuthenticationToken(tokentest.Sign(t, "writer", time.Now().Add(time.Hour))), Logger: pulsarlog.DefaultNopLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "t", DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	transaction, err := client.NewTransaction(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(t.Context(), &pulsar.ProducerMessage{Payload: []byte("x"), Transaction: transaction}); err != nil {
		t.Fatal(err)
	}
	if err := transaction.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// rawPeer speaks frames in the name of a role.
type rawPeer struct {
	t       *testing.T
	network net.Conn
	frames  *pulsarproto.FrameReader
}

func (f *fortress) rawPeer(t *testing.T, role string) *rawPeer {
	t.Helper()
	network, err := net.Dial("tcp", f.ports.binary.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	if err := network.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := &rawPeer{t, network, pulsarproto.NewFrameReader(bufio.NewReader(network), 5<<20)}
	p.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: &pulsarproto.CommandConnect{
		ClientVersion: proto.String("test"), ProtocolVersion: proto.Int32(21), AuthMethodName: proto.String("token"),
		AuthData: []byte(tokentest.Sign(t, role, time.Now().Add(time.Hour))),
	}}, pulsarproto.BaseCommand_CONNECTED)
	return p
}

// ask sends a command and returns the answer, which must be of this type.
func (p *rawPeer) ask(command *pulsarproto.BaseCommand, kind pulsarproto.BaseCommand_Type) *pulsarproto.BaseCommand {
	p.t.Helper()
	frame, err := pulsarproto.AppendCommandHead(nil, command, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.network.Write(frame); err != nil {
		p.t.Fatal(err)
	}
	answer := new(pulsarproto.BaseCommand)
	got, err := p.frames.ReadFrame()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := pulsarproto.DecodeCommand(answer, got.Command); err != nil || answer.GetType() != kind {
		p.t.Fatalf("got %v, %v, want %s", answer, err, kind)
	}
	return answer
}

// P-11, TC-26: only the owner and super users end a transaction; to others it does not exist.
func TestForeignTransaction(t *testing.T) {
	f := newFortress(t)
	owner := f.rawPeer(t, "writer")
	opened := owner.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{
		RequestId: proto.Uint64(1), TcId: proto.Uint64(0), TxnTtlSeconds: proto.Uint64(60000),
	}}, pulsarproto.BaseCommand_NEW_TXN_RESPONSE).GetNewTxnResponse()
	id := txn.ID{Most: opened.GetTxnidMostBits(), Least: opened.GetTxnidLeastBits()}
	end := func(p *rawPeer, id txn.ID) *pulsarproto.CommandEndTxnResponse {
		return p.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN.Enum(), EndTxn: &pulsarproto.CommandEndTxn{
			RequestId: proto.Uint64(2), TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: pulsarproto.TxnAction_ABORT.Enum(),
		}}, pulsarproto.BaseCommand_END_TXN_RESPONSE).GetEndTxnResponse()
	}
	for _, role := range []string{"reader", "stranger"} {
		p := f.rawPeer(t, role)
		foreign, unknown := end(p, id), end(p, txn.ID{Most: id.Most, Least: id.Least + 1000})
		if foreign.GetError() != pulsarproto.ServerError_TransactionNotFound || foreign.Error == nil || unknown.GetError() != foreign.GetError() ||
			strings.ReplaceAll(unknown.GetMessage(), txn.ID{Most: id.Most, Least: id.Least + 1000}.String(), id.String()) != foreign.GetMessage() {
			t.Errorf("%s: %v for another's, %v for none", role, foreign, unknown)
		}
	}
	if got := end(owner, id); got.Error != nil {
		t.Errorf("the owner: %v", got)
	}
	if got := end(f.rawPeer(t, "admin"), id); got.Error != nil {
		t.Errorf("the super user: %v", got)
	}
}

// A token that ends ends its connection, if the client does not know AUTH_CHALLENGE.
func TestExpiryOfConnection(t *testing.T) {
	f := newFortress(t)
	network, err := net.Dial("tcp", f.ports.binary.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	p := &rawPeer{t, network, pulsarproto.NewFrameReader(bufio.NewReader(network), 5<<20)}
	p.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: &pulsarproto.CommandConnect{
		ClientVersion: proto.String("test"), AuthMethodName: proto.String("token"), AuthData: []byte(tokentest.Sign(t, "writer", time.Now().Add(2*time.Second))),
	}}, pulsarproto.BaseCommand_CONNECTED)
	if err := network.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if frame, err := p.frames.ReadFrame(); err != io.EOF {
		t.Errorf("got %v, %v, want the end", frame, err)
	}
}

// The pages of this product: transactions are for super users (TC-27), metrics and health for everybody unless settings say more.
func TestOperatorsOnly(t *testing.T) {
	f := newFortress(t, "authenticateMetricsEndpoint=true", "anonymousUserRole=")
	certificate, key := pairFiles(t, f.authority, "admin", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.authority.Pool()}}}
	byCertificate := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.authority.Pool(), Certificates: []tls.Certificate{pair}}}}
	defer client.CloseIdleConnections()
	defer byCertificate.CloseIdleConnections()
	writer, expired := tokentest.Sign(t, "writer", time.Now().Add(time.Hour)), tokentest.Sign(t, "admin", time.Now().Add(-time.Hour))
	for _, test := range []struct {
		client        *http.Client
		path          string
		authorization string
		want          int
	}{
		{client, "/health", "", http.StatusOK},
		{client, "/metrics", "", http.StatusUnauthorized},
		{client, "/metrics", "Bearer " + writer, http.StatusOK},
		{client, "/pulsar-tc/v1/transactions", "", http.StatusUnauthorized},
		{client, "/pulsar-tc/v1/transactions", "Bearer " + writer, http.StatusForbidden},
		{client, "/pulsar-tc/v1/transactions", "Bearer " + expired, http.StatusUnauthorized},
		{client, "/pulsar-tc/v1/transactions", "Basic " + base64.StdEncoding.EncodeToString([]byte("admin:123456")), http.StatusOK},
		{client, "/pulsar-tc/v1/transactions", "Basic " + base64.StdEncoding.EncodeToString([]byte("admin:12345")), http.StatusUnauthorized},
		{byCertificate, "/pulsar-tc/v1/transactions", "", http.StatusOK},
	} {
		for _, base := range []string{f.WebURL(), f.WebURLTLS()} {
			if test.client == byCertificate && base == f.WebURL() {
				continue
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.authorization != "" {
				request.Header.Set("Authorization", test.authorization)
			}
			answer, err := test.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			var failure admin.Failure
			if answer.StatusCode != http.StatusOK {
				if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil || failure.Reason == "" {
					t.Errorf("%s%s by %.12s: reason %q, %v", base, test.path, test.authorization, failure.Reason, err)
				}
			}
			answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("%s%s by %.12s: %d, want %d", base, test.path, test.authorization, answer.StatusCode, test.want)
			}
		}
	}
}

// A server whose keys cannot be used does not start, and has written nothing (C-2).
func TestSecurityFaults(t *testing.T) {
	authority := certtest.NewAuthority(t)
	files := certtest.Write(t, authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost"), authority)
	withTLS := []string{"brokerServicePortTls=0", "tlsCertificateFilePath=" + files.Certificate, "tlsKeyFilePath=" + files.Key, "tlsTrustCertsFilePath=" + files.Trust}
	for _, test := range []struct {
		set   []string
		fault string
	}{
		{[]string{"brokerServicePortTls=0", "tlsCertificateFilePath=" + files.Key, "tlsKeyFilePath=" + files.Key}, "tlsCertificateFilePath=" + files.Key},
		{append([]string{"tlsProtocols=SSLv3"}, withTLS...), "tlsProtocols"},
		{append([]string{"tlsCiphers=NONE"}, withTLS...), "tlsCiphers"},
		{append([]string{"brokerServicePort=-1", "brokerServicePortTls=-1"}, withTLS[1:]...), "nobody could connect"},
		{[]string{"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderToken", "tokenSecretKey=data:;base64,c2hvcnQ="}, "tokenSecretKey"},
		{[]string{"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderBasic", "basicAuthConf=/nowhere"}, "basicAuthConf"},
		{[]string{"authenticationEnabled=true", "authenticationProviders=AuthenticationProviderTls", "tlsTrustCertsFilePath=" + files.Trust}, "AuthenticationProviderTls"},
	} {
		options := load(t, test.set...)
		s, err := Start(t.Context(), options)
		if err == nil {
			stop(t, s)
		}
		if err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%v: %v, want a fault of %s", test.set, err, test.fault)
		}
		if left, _ := filepath.Glob(filepath.Join(options.Config.DataDir, "*")); len(left) > 0 {
			t.Errorf("%v: %v was written", test.set, left)
		}
	}
}

// A role that loses its right loses its producers, too.
func TestRevokedRight(t *testing.T) {
	f := newFortress(t)
	p := f.rawPeer(t, "writer")
	p.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PRODUCER.Enum(), Producer: &pulsarproto.CommandProducer{
		RequestId: proto.Uint64(1), ProducerId: proto.Uint64(5), Topic: proto.String("t"),
	}}, pulsarproto.BaseCommand_PRODUCER_SUCCESS)
	err := f.resources.UpdateNamespace(t.Context(), "public/default", func(d resources.Document) error {
		return d.Set("auth_policies", nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := p.frames.ReadFrame()
	command := new(pulsarproto.BaseCommand)
	if err == nil {
		err = pulsarproto.DecodeCommand(command, frame.Command)
	}
	if err != nil || command.GetCloseProducer().GetProducerId() != 5 {
		t.Errorf("got %v, %v, want CLOSE_PRODUCER", command, err)
	}
}

// A role without rights gets nothing from Pulsar's admin REST. A transaction of others does not exist for it: 404.
func TestStrangerAtAdmin(t *testing.T) {
	f := newFortress(t)
	token := tokentest.Sign(t, "stranger", time.Now().Add(time.Hour))
	for _, call := range []string{
		"GET /admin/v2/tenants", "GET /admin/v2/tenants/public", "PUT /admin/v2/tenants/x", "DELETE /admin/v2/tenants/public",
		"GET /admin/v2/namespaces/public", "GET /admin/v2/namespaces/public/default", "GET /admin/v2/namespaces/public/none",
		"PUT /admin/v2/namespaces/public/x", "DELETE /admin/v2/namespaces/public/default", "GET /admin/v2/namespaces/public/default/topics",
		"POST /admin/v2/namespaces/public/default/permissions/stranger", "GET /admin/v2/namespaces/public/default/permissions",
		"GET /admin/v2/persistent/public/default", "PUT /admin/v2/persistent/public/default/t", "DELETE /admin/v2/persistent/public/default/t",
		"GET /admin/v2/persistent/public/default/t/stats", "GET /admin/v2/persistent/public/default/t/partitions",
		"PUT /admin/v2/persistent/public/default/t/unload", "POST /admin/v2/persistent/public/default/t/terminate",
		"GET /admin/v2/schemas/public/default/t/schema", "DELETE /admin/v2/schemas/public/default/t/schema",
		"GET /lookup/v2/topic/persistent/public/default/t", "GET /admin/v3/transactions/coordinatorStats",
	} {
		method, path, _ := strings.Cut(call, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, f.WebURL()+path, strings.NewReader("[]"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", call, answer.Status)
		}
	}
}
