package conn

import (
	"crypto/x509"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// shortLived lets everybody in as alice, for as many seconds as auth_data says; "never" never ends.
type shortLived struct{}

func (shortLived) Login(_ []*x509.Certificate, cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	return passFor(cmd.GetAuthMethodName(), cmd.GetAuthData())
}

func (shortLived) Refresh(_ cnx.Identity, _ []*x509.Certificate, data *pulsarproto.AuthData) (cnx.Identity, error) {
	return passFor(data.GetAuthMethodName(), data.GetAuthData())
}

func passFor(method string, data []byte) (cnx.Identity, error) {
	identity := cnx.Identity{Caller: Caller{Role: "alice", Known: true}, Method: method}
	if string(data) == "never" {
		return identity, nil
	}
	seconds, err := strconv.Atoi(string(data))
	if err != nil {
		return cnx.Identity{}, errors.New("not valid")
	}
	identity.Expires = time.Now().Add(time.Duration(seconds) * time.Second)
	return identity, nil
}

func (b *bench) passHolder(t *testing.T, method, data string, refresh bool) *peer {
	t.Helper()
	p := b.newPeer(t)
	connect := connectCommand(21)
	connect.Connect.AuthMethodName, connect.Connect.AuthData = &method, []byte(data)
	connect.Connect.FeatureFlags = &pulsarproto.FeatureFlags{SupportsAuthRefresh: &refresh}
	p.send(connect)
	p.want(pulsarproto.BaseCommand_CONNECTED)
	return p
}

func authResponseCommand(method, data string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_AUTH_RESPONSE.Enum(),
		AuthResponse: &pulsarproto.CommandAuthResponse{
			ClientVersion: proto.String("test"), Response: &pulsarproto.AuthData{AuthMethodName: &method, AuthData: []byte(data)},
		},
	}
}

// A client that can is challenged one interval before the end, and stays with what it answers.
func TestRefreshBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: shortLived{}, AuthRefresh: time.Minute, KeepAlive: -1})
		began := time.Now()
		p := b.passHolder(t, "token", "600", true)
		challenge := p.want(pulsarproto.BaseCommand_AUTH_CHALLENGE).GetAuthChallenge()
		if after := time.Since(began); after != 9*time.Minute {
			t.Errorf("challenged after %v", after)
		}
		if got := challenge.GetChallenge(); got.GetAuthMethodName() != "token" || string(got.GetAuthData()) != "PulsarAuthRefresh" || challenge.GetProtocolVersion() != 21 {
			t.Errorf("challenge %v", challenge)
		}
		p.send(authResponseCommand("token", "600"))
		p.alive()
		p.want(pulsarproto.BaseCommand_AUTH_CHALLENGE)
		if after := time.Since(began); after != 18*time.Minute {
			t.Errorf("challenged again after %v", after)
		}
		p.send(authResponseCommand("token", "never"))
		p.alive()
		time.Sleep(24 * time.Hour)
		p.alive()
	})
}

func TestCredentialsEnd(t *testing.T) {
	for _, test := range []struct {
		name    string
		method  string
		refresh bool
		script  func(p *peer)
		ends    time.Duration
		reason  CloseReason
	}{
		{"a client that cannot refresh", "token", false, func(*peer) {}, 10 * time.Minute, ClosedExpiredLogin},
		{"credentials that cannot be refreshed", "", true, func(*peer) {}, 10 * time.Minute, ClosedExpiredLogin},
		{"no answer", "token", true, func(p *peer) { p.want(pulsarproto.BaseCommand_AUTH_CHALLENGE) }, 10 * time.Minute, ClosedExpiredLogin},
		{"credentials that are refused", "token", true, func(p *peer) {
			p.want(pulsarproto.BaseCommand_AUTH_CHALLENGE)
			p.send(authResponseCommand("token", "forged"))
			p.wantError(1<<64-1, pulsarproto.ServerError_AuthenticationError)
		}, 9 * time.Minute, ClosedRefusedLogin},
		{"an answer that nobody asked for", "token", true, func(p *peer) { p.send(authResponseCommand("token", "never")) }, 0, ClosedBadInput},
		{"a second answer", "token", true, func(p *peer) {
			p.want(pulsarproto.BaseCommand_AUTH_CHALLENGE)
			p.send(authResponseCommand("token", "600"), authResponseCommand("token", "never"))
		}, 9 * time.Minute, ClosedBadInput},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{Authenticator: shortLived{}, AuthRefresh: time.Minute, KeepAlive: -1})
				began := time.Now()
				p := b.passHolder(t, test.method, "600", test.refresh)
				test.script(p)
				p.wantClosed()
				synctest.Wait()
				if after := time.Since(began); after != test.ends || b.lastClosed() != test.reason {
					t.Errorf("closed after %v for %q, want %v for %q", after, b.lastClosed(), test.ends, test.reason)
				}
			})
		})
	}
}

// Answers with the credentials of before bring further challenges, fewer and fewer time apart, and end with the credentials.
func TestSameCredentialsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(10 * time.Minute)
		b := newBench(t, Options{Authenticator: shortLived{}, AuthRefresh: time.Minute, KeepAlive: -1})
		p := b.passHolder(t, "token", "600", true)
		challenges := 0
		for {
			command, err := p.receive()
			if err != nil {
				break
			}
			if command.GetType() != pulsarproto.BaseCommand_AUTH_CHALLENGE {
				t.Fatalf("got %v", command)
			}
			challenges++
			p.send(authResponseCommand("token", strconv.Itoa(int(time.Until(end)/time.Second))))
		}
		if left := time.Until(end); challenges < 3 || challenges > 10 || left < 0 || left > 2*time.Second {
			t.Errorf("%d challenges, closed %v before the end", challenges, left)
		}
	})
}

// A login that ends at once is over before anything is served for long; a connection that ends leaves no timer behind.
func TestExpiredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: shortLived{}, KeepAlive: -1})
		p := b.passHolder(t, "token", "0", true)
		p.wantClosed()
		gone := b.passHolder(t, "token", "600", true)
		gone.network.Close()
		synctest.Wait()
		time.Sleep(time.Hour)
		if b.connections() != 0 {
			t.Error("a connection is left")
		}
	})
}

// A timer that is late does not let commands in: the reader looks at the clock itself.
func TestCommandBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: shortLived{}, KeepAlive: -1})
		p := b.passHolder(t, "token", "600", false)
		synctest.Wait() // CONNECTED is on its way before the timer is set
		b.Server.mu.Lock()
		for s := range b.Server.sessions {
			s.stopCredentials()
		}
		b.Server.mu.Unlock()
		time.Sleep(10 * time.Minute)
		p.send(newTxnCommand(1, 0))
		p.wantClosed()
		synctest.Wait()
		if got := b.lastClosed(); got != ClosedExpiredLogin {
			t.Errorf("closed for %q", got)
		}
	})
}

// untilForever has credentials that end when RFC 5280 4.1.2.5 says that a certificate has no end: 99991231235959Z.
type untilForever struct{}

func (untilForever) Login([]*x509.Certificate, *pulsarproto.CommandConnect) (cnx.Identity, error) {
	return cnx.Identity{Caller: Caller{Role: "alice", Known: true}, Expires: time.Unix(253402300799, 0)}, nil
}

func (u untilForever) Refresh(cnx.Identity, []*x509.Certificate, *pulsarproto.AuthData) (cnx.Identity, error) {
	return u.Login(nil, nil)
}

func TestCredentialsOfTheYear9999(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: untilForever{}})
		p := b.connectedPeer(t)
		p.alive()
		p.send(newTxnCommand(1, 0))
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
	})
}
