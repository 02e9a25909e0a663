package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.expectRead;
import static transactions.Topics.send;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** What is sent again with the sequence id that it had before. */
final class Sequence {
    private static final String DEDUPLICATION = "brokerDeduplicationEnabled=true";

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("deduplication: a resend is stored once, also after kill -9", Sequence::resend);
        all.put("deduplication: sequence ids of an aborted transaction are free again", Sequence::abortedIsFree);
        all.put("sends of a transaction in flight over kill -9 are stored once without deduplication", Sequence::inFlightOverKill);
    }

    private static void resend(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn(DEDUPLICATION);
        String topic = own.name("resend");
        Consumer<String> consumer = own.consumer(topic);
        Producer<String> producer = named(own, topic);
        producer.newMessage().sequenceId(1).value("a").send();
        producer.newMessage().sequenceId(1).value("a again").send();
        Transaction txn = own.begin(LONG);
        producer.newMessage(txn).sequenceId(2).value("b").send();
        producer.newMessage(txn).sequenceId(2).value("b again").send();
        own.server.restart();
        producer.newMessage(txn).sequenceId(2).value("b once more").send();
        txn.commit().get();
        producer.close();
        Producer<String> next = named(own, topic);
        check(next.getLastSequenceId() == 2, "last sequence id " + next.getLastSequenceId() + ", want 2");
        next.newMessage().sequenceId(2).value("b by the next producer").send();
        next.newMessage().sequenceId(3).value("c").send();
        expect(consumer, "a", "b", "c");
        expectNothing(consumer);
    }

    /** Pulsar takes them for stored and drops what is sent with them. */
    private static void abortedIsFree(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn(DEDUPLICATION);
        String topic = own.name("aborted-is-free");
        Consumer<String> consumer = own.consumer(topic);
        Producer<String> producer = named(own, topic);
        producer.newMessage().sequenceId(1).value("a").send();
        Transaction aborted = own.begin(LONG);
        producer.newMessage(aborted).sequenceId(2).value("b, aborted").send();
        aborted.abort().get();
        Transaction committed = own.begin(LONG);
        producer.newMessage(committed).sequenceId(2).value("b").send();
        committed.commit().get();
        producer.newMessage().sequenceId(2).value("b again").send();
        expect(consumer, "a", "b");
        expectNothing(consumer);
    }

    private static Producer<String> named(Topics topics, String topic) throws Exception {
        return topics.newProducer(topic).producerName("p").create();
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
            values.add(round + ":first");
            send(producer, txn, round + ":first"); // the client may turn round what waits for the registration of the topic
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
