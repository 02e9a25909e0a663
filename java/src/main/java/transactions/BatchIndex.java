package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.refused;
import static transactions.Topics.sendBatch;

import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException.TransactionConflictException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Acknowledgements of messages inside a batch, in transactions. */
final class BatchIndex {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("some of a batch, committed", BatchIndex::commit);
        all.put("some of a batch, aborted: exactly those come again", BatchIndex::abort);
        all.put("two transactions share a batch", BatchIndex::disjoint);
        all.put("the same index of a batch conflicts", BatchIndex::conflict);
        all.put("the same index twice in one command conflicts", BatchIndex::twiceInOneCommand);
        all.put("a cumulative acknowledgement inside a batch", BatchIndex::cumulative);
        all.put("a batch of more than 64", BatchIndex::manyWords);
    }

    private static void commit(Topics topics) throws Exception {
        String topic = topics.name("batch");
        Consumer<String> consumer = topics.consumer(topic);
        List<Message<String>> messages = batch(topics, topic, consumer);
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 1), txn).get();
        consumer.acknowledgeAsync(id(messages, 3), txn).get();
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic);
        expect(again, "a", "c");
        expectNothing(again);
    }

    /** Pulsar sends the whole batch again, also what the consumer still holds. */
    private static void abort(Topics topics) throws Exception {
        for (SubscriptionType type : new SubscriptionType[] {SubscriptionType.Shared, SubscriptionType.Exclusive}) {
            String topic = topics.name("batch-abort-" + type);
            Consumer<String> consumer = topics.consumer(topic, type);
            List<Message<String>> messages = batch(topics, topic, consumer);
            Transaction txn = topics.begin(LONG);
            consumer.acknowledgeAsync(id(messages, 1), txn).get();
            consumer.acknowledgeAsync(id(messages, 2), txn).get();
            txn.abort().get();
            expect(consumer, "b", "c");
            expectNothing(consumer);
            consumer.close();
            Consumer<String> again = topics.consumer(topic, type);
            expect(again, "a", "b", "c", "d");
            expectNothing(again);
        }
    }

    private static void disjoint(Topics topics) throws Exception {
        String topic = topics.name("batch-disjoint");
        Consumer<String> consumer = topics.consumer(topic);
        List<Message<String>> messages = batch(topics, topic, consumer);
        Transaction first = topics.begin(LONG);
        Transaction second = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 0), first).get();
        consumer.acknowledgeAsync(id(messages, 1), second).get();
        consumer.acknowledgeAsync(id(messages, 2), first).get();
        second.abort().get();
        first.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic);
        expect(again, "b", "d");
        expectNothing(again);
    }

    private static void conflict(Topics topics) throws Exception {
        String topic = topics.name("batch-conflict");
        Consumer<String> consumer = topics.consumer(topic);
        List<Message<String>> messages = batch(topics, topic, consumer);
        Transaction first = topics.begin(LONG);
        Transaction second = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 0), first).get();
        refused(consumer.acknowledgeAsync(id(messages, 0), first), TransactionConflictException.class);
        refused(consumer.acknowledgeAsync(id(messages, 0), second), TransactionConflictException.class);
        consumer.acknowledgeAsync(id(messages, 1), second).get();
    }

    /** Pulsar accepts this. */
    private static void twiceInOneCommand(Topics topics) throws Exception {
        String topic = topics.name("batch-twice");
        Consumer<String> consumer = topics.consumer(topic);
        List<Message<String>> messages = batch(topics, topic, consumer);
        Transaction txn = topics.begin(LONG);
        refused(consumer.acknowledgeAsync(List.of(id(messages, 2), id(messages, 2)), txn), TransactionConflictException.class);
        txn.abort().get();
        Transaction next = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 2), next).get();
        next.commit().get();
    }

    private static void cumulative(Topics topics) throws Exception {
        String topic = topics.name("batch-cumulative");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        List<Message<String>> messages = batch(topics, topic, consumer);
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeCumulativeAsync(id(messages, 1), txn).get();
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic, SubscriptionType.Exclusive);
        expect(again, "c", "d");
        expectNothing(again);
    }

    private static void manyWords(Topics topics) throws Exception {
        String topic = topics.name("batch-many");
        Consumer<String> consumer = topics.consumer(topic);
        String[] values = new String[100];
        for (int i = 0; i < values.length; i++) {
            values[i] = "m" + i;
        }
        sendBatch(topics.batching(topic), values);
        List<Message<String>> messages = expect(consumer, values);
        Transaction txn = topics.begin(LONG);
        for (int i = 0; i < values.length; i++) {
            if (i != 3 && i != 70) {
                consumer.acknowledgeAsync(id(messages, i), txn).get();
            }
        }
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic);
        expect(again, "m3", "m70");
        expectNothing(again);
    }

    /** Sends one batch of a, b, c and d, and receives it. */
    private static List<Message<String>> batch(Topics topics, String topic, Consumer<String> consumer) throws Exception {
        sendBatch(topics.batching(topic), "a", "b", "c", "d");
        return expect(consumer, "a", "b", "c", "d");
    }

    private static MessageId id(List<Message<String>> messages, int i) {
        return messages.get(i).getMessageId();
    }

    private BatchIndex() {
    }
}
