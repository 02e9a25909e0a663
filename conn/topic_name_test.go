package conn

import (
	"testing"
	"testing/synctest"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// A topic whose name is no UTF-8 has another name in every JSON that shows it, so none is made and none is found. The services are not
// asked.
func TestTopicNameIsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, badName = "persistent://public/default/a\xff", pulsarproto.ServerError_InvalidTopicName
		p := newBench(t, Options{}).connectedPeer(t)
		p.send(producerCommand(1, 1, name))
		p.wantError(1, badName)
		p.send(subscribeCommand(2, 2, name))
		p.wantError(2, badName)
		p.send(metadataCommand(3, name))
		p.wantMetadataFailure(3, badName)
		p.send(addPartitionCommand(4, 0, 1, name))
		if got := p.want(pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE).GetAddPartitionToTxnResponse(); got.GetError() != badName {
			t.Errorf("got %v", got)
		}
	})
}
