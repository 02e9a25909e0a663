package jobs;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Records of topics: the numbers from 0 on, as text. */
final class Records {
    /** Sends the records, unbatched, and behind them one of an aborted and one of an open transaction. */
    static void fill(String serviceUrl, String topic, int records) throws Exception {
        try (PulsarClient client = client(serviceUrl);
             Producer<byte[]> producer = client.newProducer(Schema.BYTES).topic(topic).enableBatching(false)
                     .sendTimeout(0, TimeUnit.SECONDS).maxPendingMessages(records).create()) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int i = 0; i < records; i++) {
                sent.add(producer.sendAsync(bytes(Integer.toString(i))));
            }
            for (CompletableFuture<MessageId> one : sent) {
                one.get();
            }
            Transaction aborted = begin(client);
            producer.newMessage(aborted).value(bytes("aborted")).send();
            aborted.abort().get();
            producer.newMessage(begin(client)).value(bytes("open")).send();
        }
    }

    private static Transaction begin(PulsarClient client) throws Exception {
        return client.newTransaction().withTransactionTimeout(10, TimeUnit.MINUTES).build().get();
    }

    /** Counts how often each record is in a topic, when no transaction is open there any more. */
    static int[] count(String serviceUrl, String topic, int records) throws Exception {
        int[] counts = new int[records];
        int seen = 0;
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(2 * Job.TRANSACTION_MILLIS);
        try (PulsarClient client = client(serviceUrl);
             Reader<byte[]> reader = client.newReader(Schema.BYTES).topic(topic).startMessageId(MessageId.earliest).create();
             Producer<byte[]> last = client.newProducer(Schema.BYTES).topic(topic).create()) {
            last.send(bytes("last")); // visible when nothing before it is open
            while (System.nanoTime() < deadline) {
                Message<byte[]> message = reader.readNext(1, TimeUnit.SECONDS);
                if (message == null) {
                    continue;
                }
                String record = new String(message.getValue(), StandardCharsets.UTF_8);
                if (record.equals("last")) {
                    return counts;
                }
                counts[Integer.parseInt(record)]++;
                seen++;
            }
        }
        throw new AssertionError(topic + " has an open transaction still, behind " + seen + " records");
    }

    private static byte[] bytes(String record) {
        return record.getBytes(StandardCharsets.UTF_8);
    }

    private static PulsarClient client(String serviceUrl) throws Exception {
        return PulsarClient.builder().serviceUrl(serviceUrl).enableTransaction(true).build();
    }

    private Records() {
    }
}
