package transactions;

import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.send;

import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** What a consumer sees of messages that were sent in transactions. */
final class Produce {
    static void commit(Topics topics) throws Exception {
        try (Producer<String> one = topics.producer(topics.name("one"));
             Producer<String> two = topics.producer(topics.name("two"));
             Consumer<String> seesOne = topics.consumer(topics.name("one"), "s");
             Consumer<String> seesTwo = topics.consumer(topics.name("two"), "s")) {
            Transaction txn = topics.begin(60_000);
            send(one, txn, "a", "b");
            send(two, txn, "c");
            expectNothing(seesOne);
            expectNothing(seesTwo);
            txn.commit().get();
            expect(seesOne, "a", "b");
            expect(seesTwo, "c");
        }
    }

    static void abort(Topics topics) throws Exception {
        try (Producer<String> producer = topics.producer(topics.name("abort"));
             Consumer<String> consumer = topics.consumer(topics.name("abort"), "s")) {
            Transaction txn = topics.begin(60_000);
            send(producer, txn, "hidden", "hidden too");
            txn.abort().get();
            producer.send("plain");
            expect(consumer, "plain");
            expectNothing(consumer);
            try (Consumer<String> later = topics.consumer(topics.name("abort"), "later")) {
                expect(later, "plain");
                expectNothing(later);
            }
        }
    }

    static void interleaved(Topics topics) throws Exception {
        try (Producer<String> producer = topics.producer(topics.name("interleaved"));
             Consumer<String> consumer = topics.consumer(topics.name("interleaved"), "s")) {
            Transaction first = topics.begin(60_000);
            Transaction second = topics.begin(60_000);
            send(producer, first, "first 1");
            send(producer, second, "second 1");
            send(producer, first, "first 2");
            send(producer, second, "second 2");
            producer.send("plain");
            second.commit().get();
            expectNothing(consumer); // nothing passes the first message of an open transaction
            first.abort().get();
            expect(consumer, "second 1", "second 2", "plain");
            expectNothing(consumer);
        }
    }

    private Produce() {
    }
}
