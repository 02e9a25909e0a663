package conn

import (
	"crypto/x509"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// FC-34, P-2: CONNECTED carries the smaller of both versions, whatever the client's is; ours is upstream's, not one of PIP-255's.
func TestFC34ProtocolVersion(t *testing.T) {
	for _, test := range []struct {
		name    string
		version *int32
		want    int32
	}{
		{"absent", nil, 0},
		{"0", proto.Int32(0), 0},
		{"6", proto.Int32(6), 6},
		{"11", proto.Int32(11), 11},
		{"12", proto.Int32(12), 12},
		{"17", proto.Int32(17), 17},
		{"18", proto.Int32(18), 18},
		{"19", proto.Int32(19), 19},
		{"20", proto.Int32(20), 20},
		{"21", proto.Int32(21), 21},
		{"99", proto.Int32(99), 21},
		{"255", proto.Int32(255), 21},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{MaxMessageSize: 1 << 20})
				p := b.newPeer(t)
				connect := connectCommand(0)
				connect.Connect.ProtocolVersion = test.version
				p.send(connect)
				p.wantCommand(&pulsarproto.BaseCommand{
					Type: pulsarproto.BaseCommand_CONNECTED.Enum(),
					Connected: &pulsarproto.CommandConnected{
						ServerVersion:   proto.String("pulsar-tc 1.2.3"),
						ProtocolVersion: proto.Int32(test.want),
						MaxMessageSize:  proto.Int32(1 << 20),
						FeatureFlags: &pulsarproto.FeatureFlags{
							SupportsGetPartitionedMetadataWithoutAutoCreation: proto.Bool(true),
						},
					},
				})

				// NEW_TXN without TC_CLIENT_CONNECT works at every version.
				p.send(newTxnCommand(1, 0))
				p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)

				// ACTIVE_CONSUMER_CHANGE is newer than version 11.
				p.send(subscribeCommand(2, 7, "t"))
				p.want(pulsarproto.BaseCommand_SUCCESS)
				b.topics.consumer(0).client.ActiveConsumerChange(true)
				if test.want >= 12 && !p.want(pulsarproto.BaseCommand_ACTIVE_CONSUMER_CHANGE).GetActiveConsumerChange().GetIsActive() {
					t.Error("the consumer is told that it is not active")
				}

				// Checksums of messages are for clients from version 11 on.
				payload, err := pulsarproto.AppendPayload(nil, &pulsarproto.MessageMetadata{
					ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(0),
				}, []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				b.topics.consumer(0).client.Message(Delivery{EntryID: 1, Payload: payload})
				p.want(pulsarproto.BaseCommand_MESSAGE)
				if got := pulsarproto.HasChecksum(p.payload); got != (test.want >= 11) {
					t.Errorf("the message has a checksum: %v", got)
				}
			})
		})
	}
}

func TestHandshake(t *testing.T) {
	for _, test := range []struct {
		name   string
		script func(p *peer)
		bad    BadInput // none: the connection stays
	}{
		{"PING before CONNECT", func(p *peer) {
			p.alive()
			p.handshake()
		}, ""},
		{"CONNECT and NEW_TXN in one write", func(p *peer) {
			p.send(connectCommand(21), newTxnCommand(1, 0))
			p.want(pulsarproto.BaseCommand_CONNECTED)
			p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		}, ""},
		{"second CONNECT", func(p *peer) {
			p.handshake()
			p.send(connectCommand(21))
		}, BadSecondConnect},
		{"NEW_TXN before CONNECT", func(p *peer) { p.send(newTxnCommand(1, 0)) }, BadBeforeConnect},
		{"LOOKUP before CONNECT", func(p *peer) { p.send(lookupCommand(1, "t")) }, BadBeforeConnect},
		{"TC_CLIENT_CONNECT before CONNECT", func(p *peer) { p.send(tcConnectCommand(1, 0)) }, BadBeforeConnect},
		{"SEND before CONNECT", func(p *peer) { p.sendPayload(sendCommand(1, 0), payloadOf(p.t, "x")) }, BadBeforeConnect},
		{"PONG before CONNECT", func(p *peer) { p.send(pongCommand()) }, BadBeforeConnect},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				p := b.newPeer(t)
				test.script(p)
				if test.bad == "" {
					p.alive()
					return
				}
				p.wantClosed()
				synctest.Wait()
				if got := b.badInputs(); len(got) != 1 || got[0] != test.bad {
					t.Errorf("bad input %q, want %q", got, test.bad)
				}
				if got := b.lastClosed(); got != ClosedBadInput {
					t.Errorf("closed for %q", got)
				}
			})
		})
	}
}

// gate lets one role in.
type gate struct{}

func (gate) Login(_ []*x509.Certificate, cmd *pulsarproto.CommandConnect) (cnx.Identity, error) {
	if string(cmd.GetAuthData()) != "open sesame" {
		return cnx.Identity{}, errors.New("wrong token")
	}
	return cnx.Identity{Caller: Caller{Role: "alice", Known: true}}, nil
}

func (gate) Refresh(cnx.Identity, []*x509.Certificate, *pulsarproto.AuthData) (cnx.Identity, error) {
	return cnx.Identity{}, errors.New("nothing here expires")
}

func TestAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: gate{}})

		refused := b.newPeer(t)
		refused.send(connectCommand(21), newTxnCommand(1, 0)) // FC-32: nothing is served after a refused CONNECT
		if text := refused.wantError(1<<64-1, pulsarproto.ServerError_AuthenticationError); text != "wrong token" {
			t.Errorf("text %q", text)
		}
		refused.wantClosed()
		synctest.Wait()
		if got := b.lastClosed(); got != ClosedRefusedLogin {
			t.Errorf("closed for %q", got)
		}
		if b.coordinators.next != 0 {
			t.Error("a transaction was opened behind a refused CONNECT")
		}

		p := b.newPeer(t)
		connect := connectCommand(21)
		connect.Connect.AuthData = []byte("open sesame")
		p.send(connect)
		p.want(pulsarproto.BaseCommand_CONNECTED)
		p.send(newTxnCommand(1, 0))
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		if got := read(&b.coordinators.mu, &b.coordinators.caller); got != (Caller{Role: "alice", Known: true}) {
			t.Errorf("caller %+v", got)
		}
	})
}
