package pulsarproto

// AppendNewTxn appends NEW_TXN. ttlMillis goes into txn_ttl_seconds, which has milliseconds despite its name; an empty
// clientName is left out.
func AppendNewTxn(dst []byte, requestID, tc, ttlMillis uint64, clientName string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_NEW_TXN)
	dst = appendUint64(dst, 1, requestID)
	dst = appendUint64(dst, 2, ttlMillis)
	dst = appendUint64(dst, 3, tc)
	if clientName != "" {
		dst = appendString(dst, 4, clientName)
	}
	return closeFrame(closeMessage(dst, body), start, 0)
}

// AppendEndTxn appends END_TXN. An empty clientName is left out.
func AppendEndTxn(dst []byte, requestID, mostBits, leastBits uint64, action TxnAction, clientName string) []byte {
	start := len(dst)
	dst, body := openBody(openFrame(dst), BaseCommand_END_TXN)
	dst = appendUint64(dst, 1, requestID)
	dst = appendUint64(dst, 2, leastBits)
	dst = appendUint64(dst, 3, mostBits)
	dst = appendUint64(dst, 4, uint64(action))
	if clientName != "" {
		dst = appendString(dst, 5, clientName)
	}
	return closeFrame(closeMessage(dst, body), start, 0)
}
