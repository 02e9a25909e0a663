package conn

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// neighbours admits connections that say that they come from another instance, if they give the password.
type neighbours struct{}

func (neighbours) Admit(cmd *pulsarproto.CommandConnect) (Caller, bool, error) {
	switch {
	case cmd.GetOriginalAuthMethod() == "":
		return Caller{}, false, nil
	case cmd.GetOriginalAuthData() != "swordfish":
		return Caller{}, false, errors.New("who are you")
	}
	return Caller{Role: "writer", Known: true}, true, nil
}

// A connection of another instance acts for whom that instance speaks, and may end transactions on participants; nobody else gets
// there with a claim alone.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Authenticator: nameTags{}, Authorizer: houseRules{}, Instances: neighbours{}})
		from := func(role, password string) *peer {
			connect := connectCommand(21)
			connect.Connect.AuthData = []byte(role)
			if password != "" {
				connect.Connect.OriginalAuthMethod, connect.Connect.OriginalAuthData = proto.String("instance"), proto.String(password)
			}
			p := b.newPeer(t)
			p.send(connect)
			return p
		}

		stranger := from("reader", "guess")
		stranger.wantError(1<<64-1, pulsarproto.ServerError_AuthenticationError)
		stranger.wantClosed()

		instance := from("reader", "swordfish")
		instance.want(pulsarproto.BaseCommand_CONNECTED)
		instance.send(newTxnCommand(1, 0))
		instance.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		if got := read(&b.coordinators.mu, &b.coordinators.caller); got != (Caller{Role: "writer", Known: true}) {
			t.Errorf("the coordinator hears of %+v", got)
		}
		instance.send(endOnPartitionCommand(2, 0, 5, "t"))
		instance.want(pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE)

		client := from("root", "")
		client.want(pulsarproto.BaseCommand_CONNECTED)
		client.send(endOnSubscriptionCommand(1, 0, 5, "t", "s"))
		client.want(pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE)
		if got := read(&b.topics.mu, &b.topics.decided); !slices.Equal(got, []bool{true, false}) {
			t.Errorf("decided: %v", got)
		}
	})
}
