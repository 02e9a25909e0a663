package faults

import (
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// since is the protocol version from which clients know what a server sends unasked.
//
// Source: PulsarApi.proto, ProtocolVersion; Commands.peerSupports*.
var since = map[pulsarproto.BaseCommand_Type]int32{
	pulsarproto.BaseCommand_PING:                   1,
	pulsarproto.BaseCommand_REACHED_END_OF_TOPIC:   9,
	pulsarproto.BaseCommand_ACTIVE_CONSUMER_CHANGE: 12,
	pulsarproto.BaseCommand_AUTH_CHALLENGE:         14,
}

// versioned is a client of a protocol version, without feature flags, that never asked for the coordinator.
type versioned struct {
	*fixture
	*wiretopic.Client
	version int32

	mu      sync.Mutex // guards the following
	unasked []pulsarproto.BaseCommand_Type
}

func newVersioned(f *fixture, version *int32) *versioned {
	f.Helper()
	v := &versioned{fixture: f}
	if version != nil {
		v.version = *version
	}
	client, err := wiretopic.DialAs(f.ctx, f.addr(), &pulsarproto.CommandConnect{
		ClientVersion: proto.String("versioned"), ProtocolVersion: version,
	}, func(command *pulsarproto.BaseCommand) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.unasked = append(v.unasked, command.GetType())
	})
	f.want("CONNECT", err, success)
	v.Client = client
	f.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	if got, want := client.Connected().GetProtocolVersion(), min(v.version, 21); got != want {
		f.Errorf("client version %d: CONNECTED has %d, want %d", v.version, got, want)
	}
	return v
}

// told reports whether the server has sent a command unasked.
func (v *versioned) told(kind pulsarproto.BaseCommand_Type) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, command := range v.unasked {
		if command == kind {
			return true
		}
	}
	return false
}

// FC-34: a client of any version is answered with the smaller one, consumes, acknowledges in transactions that it opens without a
// word to the coordinator before, and is sent nothing that is newer than it; after a restart the same.
func TestFC34ProtocolVersions(t *testing.T) {
	f := newFixture(t)
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
		}
		for _, version := range []*int32{
			nil, proto.Int32(0), proto.Int32(6), proto.Int32(11), proto.Int32(12), proto.Int32(17), proto.Int32(18), proto.Int32(19), proto.Int32(255),
		} {
			v := newVersioned(f, version)
			what := fmt.Sprintf("version-%d-%v-%d", v.version, version == nil, restart)
			full := topic(what)
			f.send(f.produce(v.Client, full), "m", nil)
			consumer := f.subscribeAs(v.Client, full, "s", pulsarproto.CommandSubscribe_Failover)
			message := f.receive(consumer, "m")
			last, err := consumer.LastMessageID(f.ctx)
			f.want(what+": GET_LAST_MESSAGE_ID", err, success)
			if positionText(last) != positionText(message.ID) {
				t.Errorf("%s: last message %s, want %s", what, positionText(last), positionText(message.ID))
			}
			id := f.begin(v.Client, longTTL, "")
			_, err = v.Call(f.ctx, wireclient.AddSubscription(id, full, "s"))
			f.want(what+": ADD", err, success)
			f.want(what+": ACK in it", consumer.Ack(f.ctx, message.ID, &id), success)
			f.end(v.Client, id, txn.Commit, success)
			if v.version >= since[pulsarproto.BaseCommand_ACTIVE_CONSUMER_CHANGE] {
				f.await(what+" is told that it is active", func() bool { return v.told(pulsarproto.BaseCommand_ACTIVE_CONSUMER_CHANGE) })
			}
			f.want("CLOSE_CONSUMER", consumer.Close(f.ctx), success) // everything before it has arrived now
			for kind, from := range since {
				if v.version < from && v.told(kind) {
					t.Errorf("%s was sent %s", what, kind)
				}
			}
		}
	}
}
