package pulsarproto

// AppendPartitionedMetadata appends PARTITIONED_METADATA_RESPONSE; 0 partitions is a plain topic, existing or not.
func AppendPartitionedMetadata(dst []byte, requestID uint64, partitions uint32) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_PARTITIONED_METADATA_RESPONSE.Enum(),
		PartitionMetadataResponse: &CommandPartitionedTopicMetadataResponse{
			RequestId:  &requestID,
			Response:   CommandPartitionedTopicMetadataResponse_Success.Enum(),
			Partitions: &partitions,
		},
	})
}

// AppendPartitionedMetadataError appends a failed PARTITIONED_METADATA_RESPONSE. ServiceNotReady makes the Go client close
// the connection and try again.
func AppendPartitionedMetadataError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	text = faultText(code, text)
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_PARTITIONED_METADATA_RESPONSE.Enum(),
		PartitionMetadataResponse: &CommandPartitionedTopicMetadataResponse{
			RequestId: &requestID,
			Response:  CommandPartitionedTopicMetadataResponse_Failed.Enum(),
			Error:     &code,
			Message:   &text,
		},
	})
}

// LookupAnswer is the body of a LOOKUP_RESPONSE that found a broker.
type LookupAnswer struct {
	ServiceURL             string // pulsar://host:port; empty: none
	ServiceURLTLS          string // pulsar+ssl://host:port; empty: none
	Redirect               bool   // ask there, instead of connecting there
	Authoritative          bool
	ProxyThroughServiceURL bool
}

// AppendLookupResponse appends LOOKUP_RESPONSE.
func AppendLookupResponse(dst []byte, requestID uint64, answer LookupAnswer) []byte {
	response := CommandLookupTopicResponse_Connect
	if answer.Redirect {
		response = CommandLookupTopicResponse_Redirect
	}
	body := &CommandLookupTopicResponse{
		RequestId:              &requestID,
		Response:               &response,
		Authoritative:          &answer.Authoritative,
		ProxyThroughServiceUrl: &answer.ProxyThroughServiceURL,
	}
	if answer.ServiceURL != "" {
		body.BrokerServiceUrl = &answer.ServiceURL
	}
	if answer.ServiceURLTLS != "" {
		body.BrokerServiceUrlTls = &answer.ServiceURLTLS
	}
	return appendReply(dst, &BaseCommand{Type: BaseCommand_LOOKUP_RESPONSE.Enum(), LookupTopicResponse: body})
}

// AppendLookupError appends a failed LOOKUP_RESPONSE. ServiceNotReady makes the Go client close the connection and try again.
func AppendLookupError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	text = faultText(code, text)
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_LOOKUP_RESPONSE.Enum(),
		LookupTopicResponse: &CommandLookupTopicResponse{
			RequestId: &requestID,
			Response:  CommandLookupTopicResponse_Failed.Enum(),
			Error:     &code,
			Message:   &text,
		},
	})
}

// TopicsOfNamespace is the body of a GET_TOPICS_OF_NAMESPACE_RESPONSE.
type TopicsOfNamespace struct {
	Topics    []string // full names; none if Unchanged
	Hash      string   // of the topics
	Filtered  bool     // by the pattern of the command
	Unchanged bool     // Hash is that of the command
}

// AppendTopicsOfNamespace appends GET_TOPICS_OF_NAMESPACE_RESPONSE.
func AppendTopicsOfNamespace(dst []byte, requestID uint64, list TopicsOfNamespace) []byte {
	changed := !list.Unchanged
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE.Enum(),
		GetTopicsOfNamespaceResponse: &CommandGetTopicsOfNamespaceResponse{
			RequestId:  &requestID,
			Topics:     list.Topics,
			TopicsHash: &list.Hash,
			Filtered:   &list.Filtered,
			Changed:    &changed,
		},
	})
}
