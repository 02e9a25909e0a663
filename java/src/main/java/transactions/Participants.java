package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.expect;
import static transactions.Topics.send;

import java.util.Map;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Topics and subscriptions that take part in a transaction: several partitions, gone ones, and the names that clients list. */
final class Participants {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a subscription that is gone does not stop a commit", Participants::unsubscribed);
    }

    private static void unsubscribed(Topics topics) throws Exception {
        String topic = topics.name("unsubscribed");
        String other = topics.name("unsubscribed-other");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "m");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(expect(consumer, "m").get(0).getMessageId(), txn).get();
        send(topics.producer(other), txn, "other");
        consumer.unsubscribe();
        txn.commit().get();
        expect(topics.consumer(other), "other");
    }

    private Participants() {
    }
}
