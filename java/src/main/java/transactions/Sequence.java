package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.expectRead;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** What is sent again with the sequence id that it had before. */
final class Sequence {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("sends of a transaction in flight over kill -9 are stored once without deduplication", Sequence::inFlightOverKill);
    }

    /** What Pulsar stores twice now and then: the client sends again what has no receipt, with the sequence id that it had. */
    private static void inFlightOverKill(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn();
        String topic = own.name("in-flight-over-kill");
        Producer<String> producer = own.newProducer(topic).maxPendingMessages(10_000).create();
        List<String> values = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            Transaction txn = own.begin(LONG);
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                String value = round + ":" + i;
                values.add(value);
                sent.add(producer.newMessage(txn).value(value).sendAsync());
            }
            sent.get(0).get();
            own.server.restart(); // most are in flight
            txn.commit().get();
        }
        expectRead(own.reader(topic), values.toArray(String[]::new));
    }

    private Sequence() {
    }
}
