package conn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestTransactionAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)

		p.send(tcConnectCommand(1, 1))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type:                    pulsarproto.BaseCommand_TC_CLIENT_CONNECT_RESPONSE.Enum(),
			TcClientConnectResponse: &pulsarproto.CommandTcClientConnectResponse{RequestId: proto.Uint64(1)},
		})

		// Both halves are present, also where they are 0. The ttl is in milliseconds.
		p.send(newTxnCommand(math.MaxUint64, 0))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_NEW_TXN_RESPONSE.Enum(),
			NewTxnResponse: &pulsarproto.CommandNewTxnResponse{
				RequestId:      proto.Uint64(math.MaxUint64),
				TxnidMostBits:  proto.Uint64(0),
				TxnidLeastBits: proto.Uint64(0),
			},
		})
		if b.coordinators.ttlMillis != 60000 || b.coordinators.named {
			t.Errorf("ttl %d, named %t", b.coordinators.ttlMillis, b.coordinators.named)
		}

		p.send(addPartitionCommand(2, 1, 5, "persistent://public/default/a", "b"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE.Enum(),
			AddPartitionToTxnResponse: &pulsarproto.CommandAddPartitionToTxnResponse{
				RequestId:      proto.Uint64(2),
				TxnidMostBits:  proto.Uint64(1),
				TxnidLeastBits: proto.Uint64(5),
			},
		})
		p.send(addSubscriptionCommand(3, 1, 5, "b", "sub"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE.Enum(),
			AddSubscriptionToTxnResponse: &pulsarproto.CommandAddSubscriptionToTxnResponse{
				RequestId:      proto.Uint64(3),
				TxnidMostBits:  proto.Uint64(1),
				TxnidLeastBits: proto.Uint64(5),
			},
		})
		want := []txn.Participant{
			{Topic: "persistent://public/default/a"},
			{Topic: "persistent://public/default/b"},
			{Topic: "persistent://public/default/b", Subscription: "sub", Kind: txn.AckedSubscription},
		}
		if !slices.Equal(b.coordinators.participants, want) {
			t.Errorf("participants %v, want %v", b.coordinators.participants, want)
		}

		p.send(endTxnCommand(4, 1, 5, pulsarproto.TxnAction_ABORT))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_END_TXN_RESPONSE.Enum(),
			EndTxnResponse: &pulsarproto.CommandEndTxnResponse{
				RequestId:      proto.Uint64(4),
				TxnidMostBits:  proto.Uint64(1),
				TxnidLeastBits: proto.Uint64(5),
			},
		})
		if !slices.Equal(b.coordinators.actions, []txn.Action{txn.Abort}) {
			t.Errorf("actions %v", b.coordinators.actions)
		}
	})
}

// scalable adds upstream's scalable=true to a command's body.
func scalable(command *pulsarproto.BaseCommand) *pulsarproto.BaseCommand {
	number := protowire.Number(5)
	switch command.GetType() {
	case pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST:
		number = 3
	case pulsarproto.BaseCommand_NEW_TXN:
		number = 4
	}
	body := bodyOf(command)
	body.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1))
	return command
}

func bodyOf(command *pulsarproto.BaseCommand) protoreflect.Message {
	reflected := command.ProtoReflect()
	return reflected.Get(reflected.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(command.GetType()))).Message()
}

// refusal reads the error of a transaction command's answer, and its transaction id.
func refusal(answer *pulsarproto.BaseCommand) (code pulsarproto.ServerError, text string, most *uint64) {
	switch answer.GetType() {
	case pulsarproto.BaseCommand_NEW_TXN_RESPONSE:
		r := answer.GetNewTxnResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	case pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE:
		r := answer.GetAddPartitionToTxnResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	case pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE:
		r := answer.GetAddSubscriptionToTxnResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	case pulsarproto.BaseCommand_END_TXN_RESPONSE:
		r := answer.GetEndTxnResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	case pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE:
		r := answer.GetEndTxnOnPartitionResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	case pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE:
		r := answer.GetEndTxnOnSubscriptionResponse()
		return r.GetError(), r.GetMessage(), r.TxnidMostBits
	}
	return -1, "", nil
}

// Every refusal of a transaction command is in that command's answer, with the coordinator's number, changes nothing and
// leaves the connection open.
func TestTransactionRefusals(t *testing.T) {
	const (
		newTxn   = pulsarproto.BaseCommand_NEW_TXN_RESPONSE
		addTopic = pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE
		addSub   = pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE
		end      = pulsarproto.BaseCommand_END_TXN_RESPONSE
		onTopic  = pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE
		onSub    = pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE

		unsupported = pulsarproto.ServerError_UnsupportedVersionError
		notAllowed  = pulsarproto.ServerError_NotAllowedError
		noTC        = pulsarproto.ServerError_TransactionCoordinatorNotFound
		badName     = pulsarproto.ServerError_InvalidTopicName
	)
	withoutAction := endTxnCommand(1, 1, 2, 0)
	withoutAction.EndTxn.TxnAction = nil
	unknownAction := endTxnCommand(1, 1, 2, 0)
	unknownAction.EndTxn.TxnAction = pulsarproto.TxnAction(7).Enum()
	partitionWithoutAction := endOnPartitionCommand(1, 1, 2, "t")
	partitionWithoutAction.EndTxnOnPartition.TxnAction = nil
	partitionWithoutMark := endOnPartitionCommand(1, 1, 2, "t")
	partitionWithoutMark.EndTxnOnPartition.TxnidLeastBitsOfLowWatermark = nil
	subscriptionWithoutAction := endOnSubscriptionCommand(1, 1, 2, "t", "s")
	subscriptionWithoutAction.EndTxnOnSubscription.TxnAction = nil
	subscriptionWithoutMark := endOnSubscriptionCommand(1, 1, 2, "t", "s")
	subscriptionWithoutMark.EndTxnOnSubscription.TxnidLeastBitsOfLowWatermark = nil
	for _, test := range []struct {
		name    string
		command *pulsarproto.BaseCommand
		answer  pulsarproto.BaseCommand_Type
		code    pulsarproto.ServerError
		most    uint64
	}{
		{"TC-2 scalable NEW_TXN", scalable(newTxnCommand(1, 1)), newTxn, unsupported, 1},
		{"TC-2 scalable ADD_PARTITION_TO_TXN", scalable(addPartitionCommand(1, 1, 2, "t")), addTopic, unsupported, 1},
		{"TC-2 scalable ADD_SUBSCRIPTION_TO_TXN", scalable(addSubscriptionCommand(1, 1, 2, "t", "s")), addSub, unsupported, 1},
		{"TC-2 scalable END_TXN", scalable(endTxnCommand(1, 1, 2, 0)), end, unsupported, 1},
		{"TC-3 END_TXN without action", withoutAction, end, notAllowed, 1},
		{"TC-3 END_TXN with an unknown action", unknownAction, end, notAllowed, 1},
		{"TC-1 NEW_TXN of no coordinator", newTxnCommand(1, 2), newTxn, noTC, 2},
		{"TC-1 NEW_TXN of coordinator 2^64-1", newTxnCommand(1, math.MaxUint64), newTxn, noTC, math.MaxUint64},
		{"TC-1 ADD_PARTITION_TO_TXN of no coordinator", addPartitionCommand(1, 9, 2, "t"), addTopic, noTC, 9},
		{"TC-1 ADD_SUBSCRIPTION_TO_TXN of no coordinator", addSubscriptionCommand(1, 9, 2, "t", "s"), addSub, noTC, 9},
		{"TC-1 END_TXN of no coordinator", endTxnCommand(1, 9, 2, 0), end, noTC, 9},
		{"TC-13 empty topic", addPartitionCommand(1, 1, 2, ""), addTopic, badName, 1},
		{"TC-13 blank topic", addPartitionCommand(1, 1, 2, " "), addTopic, badName, 1},
		{"TC-13 unknown domain", addPartitionCommand(1, 1, 2, "foo://a/b/c"), addTopic, badName, 1},
		{"TC-13 too many slashes", addPartitionCommand(1, 1, 2, "a/b/c/d"), addTopic, badName, 1},
		{"TC-13 one bad name among good ones", addPartitionCommand(1, 1, 2, "a", "foo://a/b/c", "b"), addTopic, badName, 1},
		{"TC-13 overlong topic", addPartitionCommand(1, 1, 2, strings.Repeat("x", topicname.MaxBytes+1)), addTopic, badName, 1},
		{"TC-13 topic that is not persistent", addPartitionCommand(1, 1, 2, "non-persistent://a/b/c"), addTopic, notAllowed, 1},
		{"TC-13 topic of the transaction system",
			addPartitionCommand(1, 1, 2, "persistent://pulsar/system/__transaction_log_0"), addTopic, notAllowed, 1},
		{"TC-13 subscription of a bad topic", addSubscriptionCommand(1, 1, 2, "foo://a/b/c", "s"), addSub, badName, 1},
		{"TC-13 empty subscription", addSubscriptionCommand(1, 1, 2, "t", ""), addSub, notAllowed, 1},
		{"TC-13 blank subscription", addSubscriptionCommand(1, 1, 2, "t", " \t"), addSub, notAllowed, 1},
		{"TC-13 overlong subscription",
			addSubscriptionCommand(1, 1, 2, "t", strings.Repeat("x", topicname.MaxBytes+1)), addSub, notAllowed, 1},
		{"END_TXN_ON_PARTITION without action", partitionWithoutAction, onTopic, notAllowed, 1},
		{"END_TXN_ON_PARTITION without low water mark", partitionWithoutMark, onTopic, notAllowed, 1},
		{"END_TXN_ON_PARTITION with a bad topic", endOnPartitionCommand(1, 1, 2, "foo://a/b/c"), onTopic, badName, 1},
		{"END_TXN_ON_SUBSCRIPTION without action", subscriptionWithoutAction, onSub, notAllowed, 1},
		{"END_TXN_ON_SUBSCRIPTION without low water mark", subscriptionWithoutMark, onSub, notAllowed, 1},
		{"END_TXN_ON_SUBSCRIPTION with a bad topic", endOnSubscriptionCommand(1, 1, 2, "foo://a/b/c", "s"), onSub, badName, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				p := b.connectedPeer(t)
				p.send(test.command)
				code, text, most := refusal(p.want(test.answer))
				if code != test.code || text == "" {
					t.Errorf("code %s, text %q; want %s", code, text, test.code)
				}
				if most == nil || *most != test.most {
					t.Errorf("most significant bits %v, want %d", most, test.most)
				}
				if b.coordinators.next != 0 || b.coordinators.participants != nil || b.coordinators.actions != nil {
					t.Error("the coordinator was asked")
				}
				p.alive()
			})
		})
	}
}

// What a coordinator refuses comes with its code, in that command's answer.
func TestCoordinatorErrors(t *testing.T) {
	id := txn.ID{Most: 1, Least: 2}
	for _, test := range []struct {
		name    string
		err     error
		code    pulsarproto.ServerError
		unnamed pulsarproto.ServerError
	}{
		{"not found", &txn.NotFoundError{ID: id}, 24, 24},
		{"status", fmt.Errorf("end: %w", &txn.StatusError{ID: id, Want: txn.Open, Got: txn.Aborted}), 21, 21},
		{"term over", txn.ErrCoordinatorNotFound, 20, 20},
		{"P-3 preserver closed", fmt.Errorf("end: %w", txn.ErrPreserverClosed), 26, 6},
		{"P-4 client name", txn.ErrNotAllowed, 22, 22},
		{"other", errors.New("broken"), 0, 0},
		{"no text", errors.New(""), 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				b.coordinators.newTxn = func(_ uint64, done func(txn.ID, error)) { done(txn.ID{}, test.err) }
				b.coordinators.add = func(_ txn.ID, _ []txn.Participant, done func(error)) { done(test.err) }
				b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { done(test.err) }
				p := b.connectedPeer(t)
				namedNew := newTxnCommand(1, 1)
				namedNew.NewTxn.ClientName = proto.String("")
				namedEnd := endTxnCommand(1, 1, 2, 0)
				namedEnd.EndTxn.ClientName = proto.String("c")
				for _, step := range []struct {
					command *pulsarproto.BaseCommand
					code    pulsarproto.ServerError
				}{
					{newTxnCommand(1, 1), test.unnamed},
					{namedNew, test.code},
					{addPartitionCommand(1, 1, 2, "t"), test.unnamed},
					{addSubscriptionCommand(1, 1, 2, "t", "s"), test.unnamed},
					{endTxnCommand(1, 1, 2, 0), test.unnamed},
					{namedEnd, test.code},
				} {
					p.send(step.command)
					answer, err := p.receive()
					if err != nil {
						t.Fatal(err)
					}
					code, text, most := refusal(answer)
					if code != step.code || text == "" || most == nil || *most != 1 {
						t.Errorf("%s: code %s, text %q, most %v", step.command, code, text, most)
					}
				}
			})
		})
	}
}

// FC-11: with transactions off every coordinator command gets NotAllowedError on a connection that stays, the assignment
// topic has no partition, and everything else works.
func TestFC11TransactionsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.coordinators.count = 0
		p := b.connectedPeer(t)
		p.send(metadataCommand(1, topicname.AssignTopic.String()))
		answer := p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE).GetPartitionMetadataResponse()
		if answer.GetResponse() != pulsarproto.CommandPartitionedTopicMetadataResponse_Success || answer.GetPartitions() != 0 {
			t.Errorf("partitioned metadata %v", answer)
		}
		for i, command := range []*pulsarproto.BaseCommand{
			tcConnectCommand(10, 0),
			newTxnCommand(11, 0),
			addPartitionCommand(12, 0, 1, "t"),
			addSubscriptionCommand(13, 0, 1, "t", "s"),
			endTxnCommand(14, 0, 1, 0),
		} {
			p.send(command)
			if text := p.wantError(uint64(10+i), pulsarproto.ServerError_NotAllowedError); text != "Transactions are not enabled." {
				t.Errorf("text %q", text)
			}
		}
		p.send(producerCommand(20, 1, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		p.sendPayload(sendCommand(1, 0), payloadOf(t, "x"))
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
	})
}

// FC-11: the assignment topic is there without any topic being created.
func TestFC11AssignmentTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.topics.partitions = func(topicname.Name, bool) (int, error) { return 0, errors.New("no topic may be created") }
		p := b.connectedPeer(t)
		p.send(metadataCommand(1, topicname.AssignTopic.String()))
		if got := p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE).GetPartitionMetadataResponse().GetPartitions(); got != 2 {
			t.Errorf("%d partitions, want 2", got)
		}
		for _, name := range []string{
			"persistent://pulsar/system/transaction_coordinator_assign-partition-0",
			"persistent://pulsar/system/transaction_coordinator_assign-partition-99",
			"persistent://pulsar/system/__transaction_log_0",
		} {
			p.send(metadataCommand(2, name))
			answer := p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE).GetPartitionMetadataResponse()
			if answer.Error != nil || answer.GetPartitions() != 0 {
				t.Errorf("%s: %v", name, answer)
			}
		}
		p.send(lookupCommand(3, "persistent://pulsar/system/transaction_coordinator_assign-partition-1"))
		if got := p.want(pulsarproto.BaseCommand_LOOKUP_RESPONSE).GetLookupTopicResponse(); got.GetResponse() != pulsarproto.CommandLookupTopicResponse_Connect ||
			got.GetBrokerServiceUrl() != "pulsar://localhost:6650" || !got.GetAuthoritative() || !got.GetProxyThroughServiceUrl() {
			t.Errorf("lookup %v", got)
		}
	})
}

// END_TXN_ON_* reach the topic with everything they carry.
func TestEndTxnOnParticipant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		type ended struct {
			participant  txn.Participant
			action       txn.Action
			lowWaterMark uint64
		}
		var got []ended
		b.topics.endTxn = func(participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
			got = append(got, ended{participant, action, lowWaterMark})
			done(nil)
		}
		p := b.connectedPeer(t)
		p.send(endOnPartitionCommand(1, 7, 8, "t"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE.Enum(),
			EndTxnOnPartitionResponse: &pulsarproto.CommandEndTxnOnPartitionResponse{
				RequestId:      proto.Uint64(1),
				TxnidMostBits:  proto.Uint64(7),
				TxnidLeastBits: proto.Uint64(8),
			},
		})
		p.send(endOnSubscriptionCommand(2, 7, 8, "t", ""))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE.Enum(),
			EndTxnOnSubscriptionResponse: &pulsarproto.CommandEndTxnOnSubscriptionResponse{
				RequestId:      proto.Uint64(2),
				TxnidMostBits:  proto.Uint64(7),
				TxnidLeastBits: proto.Uint64(8),
			},
		})
		want := []ended{
			{txn.Participant{Topic: "persistent://public/default/t"}, txn.Commit, 7},
			{txn.Participant{Topic: "persistent://public/default/t", Kind: txn.AckedSubscription}, txn.Abort, 7},
		}
		if !slices.Equal(got, want) {
			t.Errorf("topics were asked for %+v, want %+v", got, want)
		}
	})
}
