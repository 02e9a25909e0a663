package topic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// BenchmarkSend is one message of 100 bytes from each of n producers of one topic, each waiting for its receipt: plain, and in
// a transaction whose end is applied.
func BenchmarkSend(b *testing.B) {
	for _, inTransaction := range []bool{false, true} {
		for _, producers := range []int{1, 64} {
			b.Run(fmt.Sprintf("txn=%v/producers=%d", inTransaction, producers), func(b *testing.B) { benchmarkSend(b, producers, inTransaction) })
		}
	}
}

// BenchmarkPipelinedSend is one producer that waits for no receipt as long as fewer than a thousand are missing: plain messages of
// 100 bytes, one by one and in batches of 100, with deduplication and without.
func BenchmarkPipelinedSend(b *testing.B) {
	for _, deduplication := range []bool{false, true} {
		for _, batch := range []int32{1, 100} {
			b.Run(fmt.Sprintf("dedup=%v/batch=%d", deduplication, batch), func(b *testing.B) { benchmarkPipelinedSend(b, deduplication, batch) })
		}
	}
}

func benchmarkPipelinedSend(b *testing.B, deduplication bool, batch int32) {
	ctx := context.Background()
	topics := benchTopics(storeClient.KV, func(o *Options) {
		o.Policies = func(topicname.Name) Policies { return Policies{Deduplication: deduplication} }
	})
	defer topics.Close(ctx)
	name, err := topicname.Parse("t")
	if err != nil {
		b.Fatal(err)
	}
	const window = 1000
	client := benchClient{make(chan error, window)}
	p, _, err := topics.Produce(ctx, name, cnx.Caller{}, &pulsarproto.CommandProducer{}, client)
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 100*batch)
	metadata := &pulsarproto.MessageMetadata{NumMessagesInBatch: &batch}
	b.ReportAllocs()
	sent, received := 0, 0
	for b.Loop() {
		p.Send(cnx.Send{SequenceID: uint64(sent), HighestSequenceID: uint64(sent), NumMessages: batch, Metadata: metadata, Payload: payload})
		if sent++; sent-received == window {
			if err := <-client.receipts; err != nil {
				b.Fatal(err)
			}
			received++
		}
	}
	for ; received < sent; received++ {
		if err := <-client.receipts; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sent)*float64(batch)/b.Elapsed().Seconds(), "messages/s")
}

type benchClient struct{ receipts chan error }

func (c benchClient) Queued(cnx.ProducerInfo)                {}
func (c benchClient) Receipt(uint64, uint64, uint64, uint64) { c.receipts <- nil }
func (c benchClient) SendError(_ uint64, err error)          { c.receipts <- err }
func (c benchClient) Disconnect()                            {}
func (c benchClient) Alive(context.Context) bool             { return true }
func (c benchClient) CnxID() uint64                          { return 0 }
func (c benchClient) Peer() cnx.Peer                         { return cnx.Peer{} }

func benchmarkSend(b *testing.B, producers int, inTransaction bool) {
	ctx := context.Background()
	worlds++
	keys := keyspace.New("pulsar-tc", fmt.Sprint("bench", worlds))
	topics := New(Options{KV: storeClient.KV, Keys: keys, Log: zerolog.Nop(), MaxTxnOps: 8192, MaxRequestBytes: 6 << 20, AllowAutoTopicCreation: true})
	defer topics.Close(ctx)
	name, err := topicname.Parse("t")
	if err != nil {
		b.Fatal(err)
	}
	participant := txn.Participant{Topic: name.String()}
	payload := make([]byte, 100)
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range producers {
		group.Go(func() {
			client := benchClient{make(chan error, 1)}
			p, _, err := topics.Produce(ctx, name, cnx.Caller{}, &pulsarproto.CommandProducer{}, client)
			if err != nil {
				b.Error(err)
				return
			}
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				msg := cnx.Send{SequenceID: uint64(n), NumMessages: 1, Payload: payload, InTxn: inTransaction, Txn: txn.ID{Least: uint64(n)}}
				open := keys.Open(msg.Txn, participant)
				if inTransaction {
					if _, err := storeClient.Put(ctx, open, ""); err != nil {
						b.Error(err)
					}
				}
				p.Send(msg)
				if err := <-client.receipts; err != nil {
					b.Error(err)
				}
				if inTransaction {
					if _, err := storeClient.Delete(ctx, open); err != nil {
						b.Error(err)
					}
					topics.EndTxn(ctx, msg.Txn, participant, txn.Commit, 0, func(err error) { client.receipts <- err })
					if err := <-client.receipts; err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
