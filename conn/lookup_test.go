package conn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestPartitionedMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		var created []bool
		b.topics.partitions = func(name topicname.Name, create bool) (int, error) {
			created = append(created, create)
			if name.Local == "missing" {
				return 0, cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Topic not found")
			}
			return 3, nil
		}
		p := b.connectedPeer(t)
		p.send(metadataCommand(1, "persistent://public/default/t"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE.Enum(),
			PartitionMetadataResponse: &pulsarproto.CommandPartitionedTopicMetadataResponse{
				RequestId:  proto.Uint64(1),
				Response:   pulsarproto.CommandPartitionedTopicMetadataResponse_Success.Enum(),
				Partitions: proto.Uint32(3),
			},
		})
		command := metadataCommand(2, "missing")
		command.PartitionMetadata.MetadataAutoCreationEnabled = proto.Bool(false)
		p.send(command)
		p.wantMetadataFailure(2, pulsarproto.ServerError_TopicNotFound)
		p.send(metadataCommand(3, "foo://a/b/c"))
		p.wantMetadataFailure(3, pulsarproto.ServerError_InvalidTopicName)
		if want := []bool{true, false}; !slices.Equal(created, want) {
			t.Errorf("auto-creation %v, want %v", created, want)
		}
	})
}

func (p *peer) wantMetadataFailure(requestID uint64, code pulsarproto.ServerError) {
	p.t.Helper()
	got := p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE).GetPartitionMetadataResponse()
	if got.GetRequestId() != requestID || got.GetError() != code || got.GetMessage() == "" ||
		got.GetResponse() != pulsarproto.CommandPartitionedTopicMetadataResponse_Failed {
		p.t.Errorf("got %v, want request %d failed with %s", got, requestID, code)
	}
}

func TestLookupTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		p.send(lookupCommand(1, "t"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_LOOKUP_RESPONSE.Enum(),
			LookupTopicResponse: &pulsarproto.CommandLookupTopicResponse{
				RequestId:              proto.Uint64(1),
				Response:               pulsarproto.CommandLookupTopicResponse_Connect.Enum(),
				BrokerServiceUrl:       proto.String("pulsar://localhost:6650"),
				Authoritative:          proto.Bool(true),
				ProxyThroughServiceUrl: proto.Bool(true),
			},
		})
		b.lookup.err = errors.New("store is away")
		p.send(lookupCommand(2, "t"), lookupCommand(3, "a/b/c/d"))
		codes := map[uint64]pulsarproto.ServerError{}
		for range 2 {
			got := p.want(pulsarproto.BaseCommand_LOOKUP_RESPONSE).GetLookupTopicResponse()
			if got.GetResponse() != pulsarproto.CommandLookupTopicResponse_Failed || got.GetMessage() == "" {
				t.Errorf("answer %v", got)
			}
			codes[got.GetRequestId()] = got.GetError()
		}
		if codes[2] != pulsarproto.ServerError_UnknownError || codes[3] != pulsarproto.ServerError_InvalidTopicName {
			t.Errorf("codes %v", codes)
		}
	})
}

func TestMaxConcurrentLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxConcurrentLookups: 1})
		release := make(chan struct{})
		b.topics.partitions = func(topicname.Name, bool) (int, error) {
			<-release
			return 0, nil
		}
		p := b.connectedPeer(t)
		p.send(metadataCommand(1, "t"), metadataCommand(2, "t"))
		p.wantMetadataFailure(2, pulsarproto.ServerError_TooManyRequests)
		p.send(lookupCommand(3, "t"))
		if got := p.want(pulsarproto.BaseCommand_LOOKUP_RESPONSE).GetLookupTopicResponse(); got.GetError() != pulsarproto.ServerError_TooManyRequests {
			t.Errorf("answer %v", got)
		}
		close(release)
		p.want(pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE)
		synctest.Wait()
		p.send(lookupCommand(4, "t"))
		if got := p.want(pulsarproto.BaseCommand_LOOKUP_RESPONSE).GetLookupTopicResponse(); got.Error != nil {
			t.Errorf("answer %v", got)
		}
	})
}

func TestGetTopicsOfNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxMessageSize: 1 << 10})
		b.topics.list = func(namespace string) ([]string, error) {
			switch namespace {
			case "public/default":
				return []string{"persistent://public/default/a", "persistent://public/default/b-partition-0"}, nil
			case "public/large":
				return []string{strings.Repeat("x", 2<<10)}, nil
			}
			return nil, fmt.Errorf("namespace %s: %w", namespace, txn.ErrNotReady)
		}
		p := b.connectedPeer(t)
		p.send(listCommand(1, "public/default"))
		p.wantCommand(&pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE.Enum(),
			GetTopicsOfNamespaceResponse: &pulsarproto.CommandGetTopicsOfNamespaceResponse{
				RequestId:  proto.Uint64(1),
				Topics:     []string{"persistent://public/default/a", "persistent://public/default/b-partition-0"},
				TopicsHash: proto.String("abd2b52b"),
				Filtered:   proto.Bool(false),
				Changed:    proto.Bool(true),
			},
		})
		p.send(listCommand(2, "public/large"))
		p.wantError(2, pulsarproto.ServerError_TooManyRequests)
		p.send(listCommand(3, "public/loading"))
		p.wantError(3, pulsarproto.ServerError_ServiceNotReady)
	})
}

// A list is filtered by a pattern that is matched here, and left out where the client has it already.
func TestGetTopicsOfNamespaceByPattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.topics.list = func(string) ([]string, error) {
			return []string{"persistent://public/default/a", "persistent://public/default/b-partition-0"}, nil
		}
		p := b.connectedPeer(t)
		list := func(pattern, hash string) *pulsarproto.CommandGetTopicsOfNamespaceResponse {
			command := listCommand(1, "public/default")
			command.GetTopicsOfNamespace.TopicsPattern, command.GetTopicsOfNamespace.TopicsHash = &pattern, &hash
			p.send(command)
			return p.want(pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE).GetGetTopicsOfNamespaceResponse()
		}
		first := list("persistent://public/default/b", "")
		if got := first.GetTopics(); len(got) != 1 || got[0] != "persistent://public/default/b-partition-0" || !first.GetFiltered() || !first.GetChanged() {
			t.Errorf("by pattern: %v", first)
		}
		if again := list("persistent://public/default/b", first.GetTopicsHash()); len(again.GetTopics()) != 0 || again.GetChanged() || again.GetTopicsHash() != first.GetTopicsHash() {
			t.Errorf("with the hash: %v", again)
		}
		if long := list(strings.Repeat("b", 51), ""); len(long.GetTopics()) != 2 || long.GetFiltered() {
			t.Errorf("by a long pattern: %v", long)
		}
	})
}
