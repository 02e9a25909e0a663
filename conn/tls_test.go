package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// commonNames lets in whoever shows a certificate, by its name.
type commonNames struct{}

func (commonNames) Login(certificates []*x509.Certificate, _ *pulsarproto.CommandConnect) (cnx.Identity, error) {
	if len(certificates) == 0 {
		return cnx.Identity{}, errors.New("no certificate")
	}
	return cnx.Identity{Caller: Caller{Role: certificates[0].Subject.CommonName, Known: true}}, nil
}

func (commonNames) Refresh(cnx.Identity, []*x509.Certificate, *pulsarproto.AuthData) (cnx.Identity, error) {
	return cnx.Identity{}, errors.New("nothing here expires")
}

// serveTLS serves one connection as a TLS port does and returns the client's end, without a handshake.
func (b *bench) serveTLS(t *testing.T, authority *certtest.Authority) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	config := &tls.Config{
		Certificates: []tls.Certificate{authority.Sign(t, "server", time.Now().Add(time.Hour), "localhost").TLS(t)},
		ClientAuth:   tls.RequestClientCert,
	}
	b.ServeConn(tls.Server(server, config))
	return client
}

func TestTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := certtest.NewAuthority(t)
		b := newBench(t, Options{Authenticator: commonNames{}})
		network := tls.Client(b.serveTLS(t, authority), &tls.Config{
			RootCAs: authority.Pool(), ServerName: "localhost", Time: time.Now,
			Certificates: []tls.Certificate{authority.Sign(t, "alice", time.Now().Add(time.Hour)).TLS(t)},
		})
		p := newPeer(t, network)
		p.handshake()
		p.send(newTxnCommand(1, 0))
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		if got := read(&b.coordinators.mu, &b.coordinators.caller); got.Role != "alice" {
			t.Errorf("caller %+v", got)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.receive(); !errors.Is(err, io.EOF) {
			t.Errorf("closed with %v, want the goodbye of TLS", err)
		}
	})
}

// buffered takes all that the server writes at once: on a bare pipe its writing would wait for the client, which complains instead
// of reading on.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// What is no TLS on a TLS port ends its connection alone, with a reason that tells what it was, and within the handshake's deadline.
func TestTLSBadInput(t *testing.T) {
	for _, test := range []struct {
		name   string
		script func(t *testing.T, network net.Conn, authority *certtest.Authority)
		reason CloseReason
		bad    BadInput // empty: none
	}{
		{"a plain CONNECT", func(t *testing.T, network net.Conn, _ *certtest.Authority) {
			go network.Write(encodeFrame(t, connectCommand(21), nil))
			io.Copy(io.Discard, network)
		}, ClosedBadInput, BadPlain},
		{"HTTP", func(t *testing.T, network net.Conn, _ *certtest.Authority) {
			go io.WriteString(network, "GET / HTTP/1.1\r\n\r\n")
			io.Copy(io.Discard, network)
		}, ClosedBadInput, BadPlain},
		{"a client that does not trust us", func(t *testing.T, network net.Conn, _ *certtest.Authority) {
			client := tls.Client(buffered{network, bufio.NewReader(network)}, &tls.Config{ServerName: "localhost", RootCAs: certtest.NewAuthority(t).Pool()})
			if err := client.Handshake(); err == nil {
				t.Error("trusted")
			}
		}, ClosedBadInput, BadHandshake},
		{"an old version", func(t *testing.T, network net.Conn, authority *certtest.Authority) {
			client := tls.Client(network, &tls.Config{ServerName: "localhost", RootCAs: authority.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10})
			if err := client.Handshake(); err == nil {
				t.Error("spoken")
			}
		}, ClosedBadInput, BadHandshake},
		{"silence", func(t *testing.T, network net.Conn, _ *certtest.Authority) {
			began := time.Now()
			io.Copy(io.Discard, network)
			if after := time.Since(began); after != 30*time.Second {
				t.Errorf("closed after %v", after)
			}
		}, ClosedHandshake, ""},
		{"silence after the handshake", func(t *testing.T, network net.Conn, authority *certtest.Authority) {
			began := time.Now()
			client := tls.Client(network, &tls.Config{ServerName: "localhost", RootCAs: authority.Pool()})
			io.Copy(io.Discard, client)
			if after := time.Since(began); after != 30*time.Second {
				t.Errorf("closed after %v", after)
			}
		}, ClosedHandshake, ""},
		{"a probe that connects and goes", func(t *testing.T, network net.Conn, _ *certtest.Authority) { network.Close() }, ClosedByPeer, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := certtest.NewAuthority(t)
				b := newBench(t, Options{})
				test.script(t, b.serveTLS(t, authority), authority)
				synctest.Wait()
				bad := BadInput("")
				if all := b.badInputs(); len(all) > 0 {
					bad = all[0]
				}
				if b.lastClosed() != test.reason || bad != test.bad || b.connections() != 0 {
					t.Errorf("closed for %q and %q, %d connections left", b.lastClosed(), bad, b.connections())
				}
			})
		})
	}
}

// A peer over a limit does not hold up the listener, although it would have to shake hands to be told why.
func TestTLSRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := certtest.NewAuthority(t)
		b := newBench(t, Options{MaxConnections: 1})
		b.newPeer(t).handshake()
		began := time.Now()
		refused := b.serveTLS(t, authority)
		if time.Since(began) != 0 {
			t.Error("the listener waited")
		}
		if _, err := refused.Read(make([]byte, 1)); err == nil {
			t.Error("not closed")
		}
	})
}

// A stop does not wait for a peer in the middle of its handshake, or for one that reads no goodbye.
func TestTLSStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := certtest.NewAuthority(t)
		b := newBench(t, Options{})
		b.serveTLS(t, authority)
		deaf := tls.Client(b.serveTLS(t, authority), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
		newPeer(t, deaf).handshake()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
		if after := time.Since(began); after > 10*time.Second {
			t.Errorf("took %v", after)
		}
	})
}
