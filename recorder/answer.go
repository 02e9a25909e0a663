package recorder

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// answer is an answer as a line shows it: type, error, how the id comes back, what matters of the type, text. request may be
// nil.
func (r *recording) answer(command, request *pulsarproto.BaseCommand) string {
	text := command.GetType().String()
	body := bodyOf(command)
	if body == nil {
		return text
	}
	fields := body.Descriptor().Fields()
	if field := fields.ByName("error"); field != nil && body.Has(field) {
		code := body.Get(field).Enum()
		text += fmt.Sprintf(" err=%s(%d)", pulsarproto.ServerError(code), code)
	} else if command.GetType() != pulsarproto.BaseCommand_ERROR {
		text += " ok"
	}
	text += idBits(command, request, body) + r.details(command)
	for _, name := range []protoreflect.Name{"message", "error_message"} {
		if field := fields.ByName(name); field != nil && field.Kind() == protoreflect.StringKind && body.Has(field) {
			text += fmt.Sprintf(" msg=%q", body.Get(field).String())
		}
	}
	return text
}

// idBits says how the id halves of an answer relate to those of its request.
func idBits(command, request *pulsarproto.BaseCommand, body protoreflect.Message) string {
	leastField := body.Descriptor().Fields().ByName("txnid_least_bits")
	mostField := body.Descriptor().Fields().ByName("txnid_most_bits")
	if leastField == nil || mostField == nil {
		return ""
	}
	hasLeast, hasMost := body.Has(leastField), body.Has(mostField)
	least, most := body.Get(leastField).Uint(), body.Get(mostField).Uint()
	if command.GetType() == pulsarproto.BaseCommand_NEW_TXN_RESPONSE {
		text := " most=" + presence(hasMost)
		if hasMost {
			text += fmt.Sprintf("(%d)", most)
		}
		return text + " least=" + presence(hasLeast)
	}
	if request == nil {
		return ""
	}
	asked := bodyOf(request)
	askedLeast := asked.Get(asked.Descriptor().Fields().ByName("txnid_least_bits")).Uint()
	askedMost := asked.Get(asked.Descriptor().Fields().ByName("txnid_most_bits")).Uint()
	switch {
	case !hasLeast && !hasMost:
		return " bits=none"
	case !hasLeast || !hasMost:
		return fmt.Sprintf(" most=%s(%d) least=%s(%d)", presence(hasMost), most, presence(hasLeast), least)
	case least == askedLeast && most == askedMost:
		return " bits=echo"
	case least == askedMost && most == askedLeast:
		return " bits=swapped"
	}
	return fmt.Sprintf(" bits=(%d,%d)", most, least)
}

func presence(has bool) string {
	if has {
		return "present"
	}
	return "absent"
}

// details is what matters of some types of answers.
func (r *recording) details(command *pulsarproto.BaseCommand) string {
	switch command.GetType() {
	case pulsarproto.BaseCommand_LOOKUP_RESPONSE:
		a := command.LookupTopicResponse
		return fmt.Sprintf(" response=%s url=%v auth=%v proxy=%v", a.GetResponse(), a.BrokerServiceUrl != nil, a.GetAuthoritative(), a.GetProxyThroughServiceUrl())
	case pulsarproto.BaseCommand_PARTITIONED_METADATA_RESPONSE:
		a := command.PartitionMetadataResponse
		return fmt.Sprintf(" response=%s partitions=%d", a.GetResponse(), a.GetPartitions())
	case pulsarproto.BaseCommand_PRODUCER_SUCCESS:
		a := command.ProducerSuccess
		return fmt.Sprintf(" last_seq=%d ready=%v", a.GetLastSequenceId(), a.GetProducerReady())
	case pulsarproto.BaseCommand_SEND_RECEIPT:
		if int64(command.SendReceipt.GetMessageId().GetLedgerId()) == -1 {
			return " id=-1:-1"
		}
		return " id=real"
	case pulsarproto.BaseCommand_CONNECTED:
		a := command.Connected
		return fmt.Sprintf(" version=%s pv=%d max=%d ff={%s}", a.GetServerVersion(), a.GetProtocolVersion(), a.GetMaxMessageSize(),
			r.fields(a.GetFeatureFlags().ProtoReflect(), false))
	case pulsarproto.BaseCommand_CLOSE_CONSUMER:
		return fmt.Sprintf(" request_id=%d", int64(command.CloseConsumer.GetRequestId()))
	case pulsarproto.BaseCommand_CLOSE_PRODUCER:
		return fmt.Sprintf(" request_id=%d", int64(command.CloseProducer.GetRequestId()))
	}
	return ""
}
