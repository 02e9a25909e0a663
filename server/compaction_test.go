package server

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

// TestReadCompactedWithOfficialReader: the stock client is given the newest message of each key, also of compressed batches, and
// no placeholder.
func TestReadCompactedWithOfficialReader(t *testing.T) {
	s := start(t, load(t, "advertisedAddress=127.0.0.1"))
	client := officialClient(t, s)
	for _, compression := range []pulsar.CompressionType{pulsar.NoCompression, pulsar.LZ4, pulsar.ZLib, pulsar.ZSTD, pulsar.SNAPPY} {
		topic := fmt.Sprint("persistent://public/default/compacted-", compression)
		producer, err := client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, CompressionType: compression, BatchingMaxPublishDelay: 100 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			producer.SendAsync(t.Context(), &pulsar.ProducerMessage{
				Key: fmt.Sprint("k", i%7), Payload: fmt.Append(nil, "v", i),
			}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := producer.FlushWithCtx(t.Context()); err != nil {
			t.Fatal(err)
		}
		producer.Close()
		compact(t, s, topic)
		reader, err := client.CreateReader(pulsar.ReaderOptions{
			Topic: topic, StartMessageID: pulsar.EarliestMessageID(), ReadCompacted: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, want := map[string]string{}, map[string]string{}
		for i := 23; i < 30; i++ {
			want[fmt.Sprint("k", i%7)] = fmt.Sprint("v", i)
		}
		messages := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for ; reader.HasNext(); messages++ {
			m, err := reader.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got[m.Key()] = string(m.Payload())
		}
		cancel()
		reader.Close()
		if messages != len(want) || !maps.Equal(got, want) {
			t.Errorf("compression %v: %d messages, %v, want %v", compression, messages, got, want)
		}
	}
}

// compact compacts with the stock admin client and waits for the end.
func compact(t *testing.T, s *Server, topic string) {
	t.Helper()
	name, err := utils.GetTopicName(topic)
	if err != nil {
		t.Fatal(err)
	}
	topics := adminClient(t, s).Topics()
	if err := topics.Compact(*name); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		status, err := topics.CompactStatus(*name)
		switch {
		case err != nil || status.Status == utils.ERROR || time.Now().After(deadline):
			t.Fatalf("%+v, %v", status, err)
		case status.Status == utils.SUCCESS:
			return
		}
	}
}
