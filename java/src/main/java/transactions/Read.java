package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.expectRead;
import static transactions.Topics.send;

import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Readers and positions beside transactions. */
final class Read {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a reader ends before an open transaction, and goes on behind it", Read::open);
        all.put("a reader ends at a committed tail", Read::committed);
        all.put("a reader ends before an aborted tail", Read::aborted);
        all.put("a reader of aborted messages alone has nothing to read", Read::abortedAlone);
        all.put("tails after kill -9", Read::tailsOverKill);
        all.put("a subscription made at Latest beside an open transaction sees all of it", Read::latest);
        all.put("seek to a message and to the earliest", Read::seekToMessage);
        all.put("seek to a time", Read::seekToTime);
    }

    private static void open(Topics topics) throws Exception {
        String topic = topics.name("read-open");
        Producer<String> producer = topics.producer(topic);
        send(producer, "a");
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "b");
        send(producer, "c");
        Reader<String> reader = topics.reader(topic);
        expectRead(reader, "a");
        txn.commit().get();
        expectRead(reader, "b", "c");
        Transaction first = topics.begin(LONG);
        String fresh = topics.name("read-open-first");
        send(topics.producer(fresh), first, "hidden");
        expectRead(topics.reader(fresh));
    }

    private static void committed(Topics topics) throws Exception {
        String topic = topics.name("read-committed");
        Producer<String> producer = topics.producer(topic);
        for (String value : new String[] {"a", "b"}) {
            Transaction txn = topics.begin(LONG);
            send(producer, txn, value);
            txn.commit().get();
        }
        expectRead(topics.reader(topic), "a", "b");
    }

    private static void aborted(Topics topics) throws Exception {
        String topic = topics.name("read-aborted");
        Producer<String> producer = topics.producer(topic);
        Transaction committed = topics.begin(LONG);
        send(producer, committed, "a");
        committed.commit().get();
        Transaction aborted = topics.begin(LONG);
        send(producer, aborted, "b", "c");
        aborted.abort().get();
        Reader<String> reader = topics.reader(topic);
        expectRead(reader, "a");
        send(producer, "d");
        expectRead(reader, "d");
    }

    private static void abortedAlone(Topics topics) throws Exception {
        String topic = topics.name("read-aborted-alone");
        Transaction txn = topics.begin(LONG);
        send(topics.producer(topic), txn, "a");
        txn.abort().get();
        expectRead(topics.reader(topic));
        expectRead(topics.reader(topics.name("read-empty")));
    }

    private static void tailsOverKill(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn();
        Producer<String> producer = own.producer(own.name("tails"));
        send(producer, "a");
        Transaction aborted = own.begin(LONG);
        send(producer, aborted, "b");
        aborted.abort().get();
        Transaction open = own.begin(LONG);
        send(producer, open, "c");
        own.server.restart();
        Reader<String> reader = own.reader(own.name("tails"));
        expectRead(reader, "a");
        open.commit().get();
        expectRead(reader, "c");
    }

    /** In Pulsar it sees only what the transaction sends from then on. */
    private static void latest(Topics topics) throws Exception {
        String topic = topics.name("latest");
        Producer<String> producer = topics.producer(topic);
        send(producer, "before");
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "a");
        Consumer<String> consumer = topics.newConsumer(topic, SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Latest).subscribe();
        send(producer, txn, "b");
        txn.commit().get();
        expect(consumer, "a", "b");
        expectNothing(consumer);
    }

    private static void seekToMessage(Topics topics) throws Exception {
        String topic = topics.name("seek");
        Producer<String> producer = topics.producer(topic);
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(producer, "a");
        Transaction aborted = topics.begin(LONG);
        send(producer, aborted, "hidden");
        aborted.abort().get();
        send(producer, "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        consumer.acknowledgeCumulative(messages.get(2));
        consumer.seek(messages.get(1).getMessageId());
        expect(consumer, "c"); // the client itself leaves out the message that it is told to seek
        consumer.seek(MessageId.earliest);
        expect(consumer, "a", "b", "c");
        consumer.seek(MessageId.latest);
        expectNothing(consumer);
    }

    private static void seekToTime(Topics topics) throws Exception {
        String topic = topics.name("seek-time");
        Producer<String> producer = topics.producer(topic);
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(producer, "a");
        long before = expect(consumer, "a").get(0).getPublishTime();
        while (System.currentTimeMillis() <= before) {
            Thread.onSpinWait();
        }
        send(producer, "b", "c");
        Message<String> second = expect(consumer, "b", "c").get(0);
        consumer.seek(second.getPublishTime());
        expect(consumer, "b", "c");
        consumer.seek(before - 10_000);
        expect(consumer, "a", "b", "c");
        check(consumer.isConnected(), "connected after seeking");
    }

    private Read() {
    }
}
