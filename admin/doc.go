// Package admin is the HTTP side for operators: health, metrics, and the transactions that are live, stuck or ended.
//
//	GET  /health                                             state of every coordinator; 503 unless all serve
//	GET  /metrics                                            Prometheus text
//	GET  /pulsar-tc/v1/transactions                          live ones; olderThan=30s, state=OPEN, clientName=, limit=
//	GET  /pulsar-tc/v1/transactions/{most}/{least}           one, live or ended
//	POST /pulsar-tc/v1/transactions/{most}/{least}/resolve   {"topic": "...", "subscription": "...", "operator": "..."}
//
// What resolve records as the operator is the authenticated role; what the body says counts where authentication is off.
//
// Where several processes share the store, a list has what this one leads, and who asks for a transaction that another one leads is
// sent there (307); /health names all of them.
//
// Errors are JSON objects with one field, reason. The handler makes no decision of its own.
//
// What requests hold is bounded: a list shows at most 10,000 transactions (1,000 unless limit says otherwise) and is written
// one by one, and beyond 64 requests at once the answer is 503.
package admin
