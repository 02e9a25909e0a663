package pulsarproto

// The answers to transaction commands. The Java client routes them by the most bits, which are the coordinator's number,
// and closes the connection on one it does not know; the Go client dereferences both halves. So a success and every
// answer about a transaction has both, also where they are 0.
// Source: ClientCnx.checkAndGetTransactionMetaStoreHandler; transaction_coordinator_client.go of pulsar-client-go.

// AppendTcClientConnectResponse appends TC_CLIENT_CONNECT_RESPONSE, always a success: the Go client does not look at its
// error field, so that a refusal is an ERROR.
func AppendTcClientConnectResponse(dst []byte, requestID uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_TC_CLIENT_CONNECT_RESPONSE)
	dst = appendUint64(dst, 1, requestID)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendNewTxnResponse appends NEW_TXN_RESPONSE.
func AppendNewTxnResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_NEW_TXN_RESPONSE, requestID, mostBits, leastBits)
}

// AppendNewTxnError appends a NEW_TXN_RESPONSE with an error: the coordinator asked, and no least bits.
func AppendNewTxnError(dst []byte, requestID, mostBits uint64, code ServerError, text string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_NEW_TXN_RESPONSE)
	dst = appendUint64(dst, 1, requestID)
	dst = appendUint64(dst, 3, mostBits)
	dst = appendFault(dst, 4, code, text)
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendAddPartitionToTxnResponse appends ADD_PARTITION_TO_TXN_RESPONSE.
func AppendAddPartitionToTxnResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE, requestID, mostBits, leastBits)
}

// AppendAddPartitionToTxnError appends an ADD_PARTITION_TO_TXN_RESPONSE with an error.
func AppendAddPartitionToTxnError(dst []byte, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	return appendTxnError(dst, BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE, requestID, mostBits, leastBits, code, text)
}

// AppendAddSubscriptionToTxnResponse appends ADD_SUBSCRIPTION_TO_TXN_RESPONSE.
func AppendAddSubscriptionToTxnResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, requestID, mostBits, leastBits)
}

// AppendAddSubscriptionToTxnError appends an ADD_SUBSCRIPTION_TO_TXN_RESPONSE with an error.
func AppendAddSubscriptionToTxnError(dst []byte, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	return appendTxnError(dst, BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, requestID, mostBits, leastBits, code, text)
}

// AppendEndTxnResponse appends END_TXN_RESPONSE.
func AppendEndTxnResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_END_TXN_RESPONSE, requestID, mostBits, leastBits)
}

// AppendEndTxnError appends an END_TXN_RESPONSE with an error.
func AppendEndTxnError(dst []byte, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	return appendTxnError(dst, BaseCommand_END_TXN_RESPONSE, requestID, mostBits, leastBits, code, text)
}

// AppendEndTxnOnPartitionResponse appends END_TXN_ON_PARTITION_RESPONSE.
func AppendEndTxnOnPartitionResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_END_TXN_ON_PARTITION_RESPONSE, requestID, mostBits, leastBits)
}

// AppendEndTxnOnPartitionError appends an END_TXN_ON_PARTITION_RESPONSE with an error.
func AppendEndTxnOnPartitionError(dst []byte, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	return appendTxnError(dst, BaseCommand_END_TXN_ON_PARTITION_RESPONSE, requestID, mostBits, leastBits, code, text)
}

// AppendEndTxnOnSubscriptionResponse appends END_TXN_ON_SUBSCRIPTION_RESPONSE.
func AppendEndTxnOnSubscriptionResponse(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	return appendTxnSuccess(dst, BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE, requestID, mostBits, leastBits)
}

// AppendEndTxnOnSubscriptionError appends an END_TXN_ON_SUBSCRIPTION_RESPONSE with an error.
func AppendEndTxnOnSubscriptionError(dst []byte, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	return appendTxnError(dst, BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE, requestID, mostBits, leastBits, code, text)
}

// appendTxnSuccess writes an answer to a transaction command; all but TC_CLIENT_CONNECT_RESPONSE have the same layout.
func appendTxnSuccess(dst []byte, commandType BaseCommand_Type, requestID, mostBits, leastBits uint64) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), commandType)
	dst = appendTxnID(dst, requestID, mostBits, leastBits)
	return closeFrame(closeMessage(dst, body), start, 0)
}

func appendTxnError(dst []byte, commandType BaseCommand_Type, requestID, mostBits, leastBits uint64, code ServerError, text string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), commandType)
	dst = appendTxnID(dst, requestID, mostBits, leastBits)
	dst = appendFault(dst, 4, code, text)
	return closeFrame(closeMessage(dst, body), start, 0)
}

func appendTxnID(dst []byte, requestID, mostBits, leastBits uint64) []byte {
	dst = appendUint64(dst, 1, requestID)
	dst = appendUint64(dst, 2, leastBits)
	return appendUint64(dst, 3, mostBits)
}
