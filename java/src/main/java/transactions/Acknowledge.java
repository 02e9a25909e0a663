package transactions;

import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;

import java.util.List;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Individual acknowledgements in transactions. */
final class Acknowledge {
    static void commit(Topics topics) throws Exception {
        String topic = topics.name("ack");
        try (Producer<String> producer = topics.producer(topic)) {
            try (Consumer<String> consumer = topics.consumer(topic, "s")) {
                sendAll(producer, "a", "b", "c");
                List<Message<String>> messages = expect(consumer, "a", "b", "c");
                Transaction txn = topics.begin(60_000);
                consumer.acknowledgeAsync(messages.get(0).getMessageId(), txn).get();
                consumer.acknowledgeAsync(messages.get(2).getMessageId(), txn).get();
                txn.commit().get();
            }
            try (Consumer<String> again = topics.consumer(topic, "s")) {
                expect(again, "b");
                expectNothing(again);
            }
        }
    }

    static void abort(Topics topics) throws Exception {
        String topic = topics.name("ack-abort");
        try (Producer<String> producer = topics.producer(topic);
             Consumer<String> consumer = topics.consumer(topic, "s")) {
            sendAll(producer, "a", "b");
            List<Message<String>> messages = expect(consumer, "a", "b");
            Transaction txn = topics.begin(60_000);
            consumer.acknowledgeAsync(messages.get(0).getMessageId(), txn).get();
            consumer.acknowledge(messages.get(1));
            consumer.redeliverUnacknowledgedMessages();
            expectNothing(consumer); // the acknowledgement holds its message until the transaction ends
            txn.abort().get();
            Message<String> back = expect(consumer, "a").get(0);
            check(back.getRedeliveryCount() > 0, "a message that comes again counts as redelivered");
            consumer.acknowledge(back);
            expectNothing(consumer);
        }
    }

    private static void sendAll(Producer<String> producer, String... values) throws Exception {
        for (String value : values) {
            producer.send(value);
        }
    }

    private Acknowledge() {
    }
}
