package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.refused;
import static transactions.Topics.send;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException;

/** What a consumer sees of messages that were sent in transactions. */
final class Produce {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a commit shows the messages of every topic", Produce::commit);
        all.put("an abort hides the messages for ever", Produce::abort);
        all.put("two interleaved transactions on one topic", Produce::interleaved);
        all.put("many sends in flight keep their order", Produce::inFlight);
        all.put("batches of a transaction", Produce::batches);
        all.put("a plain message inside a transaction's batch has the transaction's fate", Produce::plainInBatch);
        all.put("chunks of a message in a transaction", Produce::chunks);
        all.put("a send behind the end is refused and holds nothing back", Produce::lateSend);
        all.put("a send in a transaction to a non-persistent topic is refused", Produce::nonPersistent);
    }

    private static void commit(Topics topics) throws Exception {
        Producer<String> one = topics.producer(topics.name("one"));
        Producer<String> two = topics.producer(topics.name("two"));
        Consumer<String> seesOne = topics.consumer(topics.name("one"));
        Consumer<String> seesTwo = topics.consumer(topics.name("two"));
        Transaction txn = topics.begin(LONG);
        send(one, txn, "a", "b");
        send(two, txn, "c");
        expectNothing(seesOne);
        expectNothing(seesTwo);
        txn.commit().get();
        expect(seesOne, "a", "b");
        expect(seesTwo, "c");
    }

    private static void abort(Topics topics) throws Exception {
        String topic = topics.name("abort");
        Producer<String> producer = topics.producer(topic);
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "hidden", "hidden too");
        txn.abort().get();
        send(producer, "plain");
        expect(consumer, "plain");
        expectNothing(consumer);
        Consumer<String> later = topics.newConsumer(topic, SubscriptionType.Shared)
                .subscriptionName("later").subscribe();
        expect(later, "plain");
        expectNothing(later);
    }

    private static void interleaved(Topics topics) throws Exception {
        Producer<String> producer = topics.producer(topics.name("interleaved"));
        Consumer<String> consumer = topics.consumer(topics.name("interleaved"));
        Transaction first = topics.begin(LONG);
        Transaction second = topics.begin(LONG);
        send(producer, first, "first 1");
        send(producer, second, "second 1");
        send(producer, first, "first 2");
        send(producer, second, "second 2");
        send(producer, "plain");
        second.commit().get();
        expectNothing(consumer); // nothing passes the first message of an open transaction
        first.abort().get();
        expect(consumer, "second 1", "second 2", "plain");
        expectNothing(consumer);
    }

    private static void inFlight(Topics topics) throws Exception {
        String topic = topics.name("in-flight");
        Producer<String> producer = topics.newProducer(topic).maxPendingMessages(1000).create();
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(LONG);
        String[] values = new String[500];
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            values[i] = "m" + i;
            sent.add(producer.newMessage(txn).value(values[i]).sendAsync());
        }
        txn.commit().get(); // waits for the sends
        for (CompletableFuture<MessageId> one : sent) {
            check(one.isDone(), "committed before a send was answered");
        }
        expect(consumer, values);
    }

    private static void batches(Topics topics) throws Exception {
        Producer<String> producer = topics.newProducer(topics.name("batches")).enableBatching(true)
                .batchingMaxPublishDelay(50, TimeUnit.MILLISECONDS).create();
        Consumer<String> consumer = topics.consumer(topics.name("batches"));
        Transaction first = topics.begin(LONG);
        sendBatch(producer, first, "a", "b", "c");
        Transaction second = topics.begin(LONG);
        sendBatch(producer, second, "d", "e");
        Transaction third = topics.begin(LONG);
        sendBatch(producer, third, "f", "g");
        second.abort().get();
        third.commit().get();
        expectNothing(consumer);
        first.commit().get();
        expect(consumer, "a", "b", "c", "f", "g");
        expectNothing(consumer);
    }

    private static void sendBatch(Producer<String> producer, Transaction txn, String... values) throws Exception {
        send(producer, txn, values[0]); // what follows needs no registration, so that flush meets all of it
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (String value : List.of(values).subList(1, values.length)) {
            sent.add(producer.newMessage(txn).value(value).sendAsync());
        }
        producer.flush();
        for (CompletableFuture<MessageId> one : sent) {
            one.get();
        }
    }

    /** The client does this, whatever the server: the batch has one transaction. Two producers are the way out. */
    private static void plainInBatch(Topics topics) throws Exception {
        String topic = topics.name("plain-in-batch");
        Producer<String> producer = topics.batching(topic);
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(LONG);
        producer.newMessage(txn).value("of the transaction").sendAsync();
        topics.producer(topic); // the transaction's registration is answered before this
        producer.sendAsync("plain");
        producer.flush();
        txn.abort().get();
        send(topics.producer(topic), "behind");
        expect(consumer, "behind");
        expectNothing(consumer);
    }

    private static void chunks(Topics topics) throws Exception {
        String topic = topics.name("chunks");
        Producer<String> producer = topics.newProducer(topic).enableChunking(true).chunkMaxMessageSize(1000).create();
        Consumer<String> consumer = topics.consumer(topic);
        String large = "0123456789".repeat(1000);
        Transaction aborted = topics.begin(LONG);
        send(producer, aborted, large + "aborted");
        aborted.abort().get();
        Transaction txn = topics.begin(LONG);
        send(producer, txn, large);
        expectNothing(consumer);
        txn.commit().get();
        Transaction acknowledging = topics.begin(LONG);
        consumer.acknowledgeAsync(expect(consumer, large).get(0).getMessageId(), acknowledging).get();
        acknowledging.commit().get();
        consumer.redeliverUnacknowledgedMessages();
        expectNothing(consumer);
    }

    private static void lateSend(Topics topics) throws Exception {
        String topic = topics.name("late");
        Producer<String> producer = topics.producer(topic);
        Consumer<String> consumer = topics.consumer(topic);
        for (boolean commit : new boolean[] {true, false}) {
            Transaction txn = topics.begin(LONG);
            send(producer, txn, "in time");
            if (commit) {
                topics.otherCoordinator().commitAsync(txn.getTxnID()).get();
                expect(consumer, "in time");
            } else {
                topics.otherCoordinator().abortAsync(txn.getTxnID()).get();
            }
            refused(producer.newMessage(txn).value("late").sendAsync(), PulsarClientException.NotAllowedException.class);
            send(producer, "plain");
            expect(consumer, "plain");
        }
        expectNothing(consumer);
    }

    private static void nonPersistent(Topics topics) throws Exception {
        String topic = topics.name("volatile").replace("persistent:", "non-persistent:");
        Producer<String> producer = topics.producer(topic);
        Transaction txn = topics.begin(LONG);
        refused(producer.newMessage(txn).value("m").sendAsync(), TransactionCoordinatorClientException.class);
        check(producer.isConnected(), "the connection was closed");
        txn.abort().get();
        commit(topics); // the same client goes on
    }

    private Produce() {
    }
}
