package pulsarproto

import "google.golang.org/protobuf/encoding/protowire"

// Scalable reports whether a transaction command carries scalable=true, which only Pulsar's v5 SDK sets. In NEW_TXN and
// END_TXN upstream's bool has the number of PIP-255's client_name, so that it parses as an unknown varint there.
// Source: PulsarApi.proto of 5.0.0-M1, CommandNewTxn 4, CommandEndTxn 5.
func Scalable(command *BaseCommand) bool {
	switch command.GetType() {
	case BaseCommand_TC_CLIENT_CONNECT_REQUEST:
		return command.GetTcClientConnectRequest().GetScalable()
	case BaseCommand_ADD_PARTITION_TO_TXN:
		return command.GetAddPartitionToTxn().GetScalable()
	case BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		return command.GetAddSubscriptionToTxn().GetScalable()
	case BaseCommand_NEW_TXN:
		return unknownBool(command.GetNewTxn().ProtoReflect().GetUnknown(), 4)
	case BaseCommand_END_TXN:
		return unknownBool(command.GetEndTxn().ProtoReflect().GetUnknown(), 5)
	}
	return false
}

// unknownBool returns the last varint of number as a bool: the last occurrence of a field counts.
func unknownBool(unknown []byte, number protowire.Number) bool {
	value := false
	for len(unknown) > 0 {
		fieldNumber, fieldType, n := protowire.ConsumeField(unknown)
		if n < 0 {
			return value
		}
		if fieldNumber == number && fieldType == protowire.VarintType {
			_, _, tagSize := protowire.ConsumeTag(unknown)
			varint, _ := protowire.ConsumeVarint(unknown[tagSize:])
			value = protowire.DecodeBool(varint)
		}
		unknown = unknown[n:]
	}
	return value
}
