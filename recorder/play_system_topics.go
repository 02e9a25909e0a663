package recorder

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// playSystemTopics uses the topics that the server keeps to itself.
func playSystemTopics(r *recording) {
	x := r.dial()
	sys := "persistent://pulsar/system/"
	for _, n := range []string{"transaction_coordinator_assign", "transaction_coordinator_assign-partition-0", "transaction_coordinator_assign-partition-99", "__transaction_log_0", "__transaction_log_7"} {
		r.request("partition metadata", x, partitionsCommand(sys+n))
		r.request("lookup", x, lookupCommand(sys+n))
	}
	for _, n := range []string{"persistent://public/default/__transaction_buffer_snapshot", "persistent://public/default/__transaction_buffer_snapshot_segments", "persistent://public/default/or-" + r.target.Run + "-g4-ind-s__transaction_pending_ack", "persistent://public/default/nosuch-" + r.target.Run, "persistent://public/nons-" + r.target.Run + "/x", "persistent://nott-" + r.target.Run + "/x/y"} {
		r.request("partition metadata", x, partitionsCommand(n))
		r.request("lookup", x, lookupCommand(n))
	}
	r.request("partition metadata, auto creation true", x, withUnknown(partitionsCommand(assignTopic), varintField(6, 1)))
	r.request("partition metadata, auto creation false", x, withUnknown(partitionsCommand(assignTopic), varintField(6, 0)))
	r.request("partition metadata, auto creation false", x, withUnknown(partitionsCommand("persistent://public/default/nosuch2-"+r.target.Run), varintField(6, 0)))
	y := r.dial()
	r.request("partition metadata invalid name", y, partitionsCommand("foo://a/b"))
	r.request("lookup invalid name", y, lookupCommand("foo://a/b"))
	for _, t := range []string{assignTopic, assignTopic + "-partition-0", assignTopic + "-partition-99", sys + "__transaction_log_0", sys + "__transaction_log_99", "persistent://public/default/__transaction_log_0", "persistent://public/default/__transaction_buffer_snapshot", "persistent://public/default/or-" + r.target.Run + "-x__transaction_pending_ack", "persistent://public/default/__change_events", sys + "other-" + r.target.Run} {
		z := r.dial()
		id := uint64(1)
		z.ask(lookupCommand(t))
		a := r.request("produce", z, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PRODUCER.Enum(), Producer: &pulsarproto.CommandProducer{Topic: &t, ProducerId: &id}})
		if a.ok() && !strings.Contains(t, "__change_events") && !strings.Contains(t, "snapshot") {
			r.send("produce: send", z, 1, "x", sendOptions{})
		}
		c := uint64(1)
		r.request("subscribe", z, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SUBSCRIBE.Enum(), Subscribe: &pulsarproto.CommandSubscribe{Topic: &t, Subscription: proto.String("probe"), SubType: pulsarproto.CommandSubscribe_Shared.Enum(), ConsumerId: &c, Durable: proto.Bool(false), InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum()}})
		z.close()
	}
	r.rest("list pulsar/system", "GET", "/admin/v2/persistent/pulsar/system", "")
	r.rest("create assign partition", "PUT", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign-partition-0", "")
	r.rest("create log topic", "PUT", "/admin/v2/persistent/pulsar/system/__transaction_log_5", "")
	z := r.dial()
	r.request("topics of namespace", z, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE.Enum(), GetTopicsOfNamespace: &pulsarproto.CommandGetTopicsOfNamespace{Namespace: proto.String("pulsar/system"), Mode: pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT.Enum()}})
}
