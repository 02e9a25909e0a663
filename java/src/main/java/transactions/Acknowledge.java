package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.refused;
import static transactions.Topics.send;

import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException.TransactionConflictException;
import org.apache.pulsar.client.api.PulsarClientException.TransactionHasOperationFailedException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Acknowledgements of whole messages in transactions. */
final class Acknowledge {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a committed acknowledgement stays", Acknowledge::commit);
        all.put("an aborted acknowledgement gives the message back", Acknowledge::abort);
        all.put("an abort on an Exclusive subscription gives back what was acknowledged and no more", Acknowledge::abortExclusive);
        all.put("an abort gives a message to the consumer that is left", Acknowledge::abortToAnother);
        all.put("a list in one command", Acknowledge::list);
        all.put("a cumulative acknowledgement, committed", Acknowledge::cumulativeCommit);
        all.put("a cumulative acknowledgement, aborted", Acknowledge::cumulativeAbort);
        all.put("two transactions that acknowledge one message conflict", Acknowledge::conflict);
        all.put("two cumulative acknowledgements conflict", Acknowledge::cumulativeConflict);
        all.put("the same message twice in one transaction conflicts", Acknowledge::twice);
        all.put("a plain acknowledgement of a pending message stands", Acknowledge::plainOverPending);
        all.put("a pending acknowledgement survives kill -9", Acknowledge::pendingOverKill);
    }

    private static void commit(Topics topics) throws Exception {
        String topic = topics.name("ack");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 0), txn).get();
        consumer.acknowledgeAsync(id(messages, 2), txn).get();
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic);
        expect(again, "b");
        expectNothing(again);
    }

    private static void abort(Topics topics) throws Exception {
        String topic = topics.name("ack-abort");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "a", "b");
        List<Message<String>> messages = expect(consumer, "a", "b");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 0), txn).get();
        consumer.acknowledge(messages.get(1));
        consumer.redeliverUnacknowledgedMessages();
        expectNothing(consumer); // the acknowledgement holds its message until the transaction ends
        txn.abort().get();
        Message<String> back = expect(consumer, "a").get(0);
        check(back.getRedeliveryCount() > 0, "a message that comes again counts as redelivered");
        consumer.acknowledge(back);
        expectNothing(consumer);
    }

    /** Pulsar rewinds: the consumer is sent "a" and "c", which it still holds, again as well. */
    private static void abortExclusive(Topics topics) throws Exception {
        String topic = topics.name("ack-exclusive");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(topics.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 1), txn).get();
        txn.abort().get();
        expect(consumer, "b");
        expectNothing(consumer);
    }

    private static void abortToAnother(Topics topics) throws Exception {
        String topic = topics.name("ack-another");
        send(topics.producer(topic), "m");
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id(expect(consumer, "m"), 0), txn).get();
        txn.abort().get();
        consumer.close(); // right behind the abort: the next consumer is given the message once
        Consumer<String> next = topics.consumer(topic);
        expect(next, "m");
        expectNothing(next);
    }

    private static void list(Topics topics) throws Exception {
        String topic = topics.name("list");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "a", "b", "c", "d");
        List<Message<String>> messages = expect(consumer, "a", "b", "c", "d");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(List.of(id(messages, 0), id(messages, 2), id(messages, 3)), txn).get();
        Transaction other = topics.begin(LONG);
        refused(consumer.acknowledgeAsync(List.of(id(messages, 1), id(messages, 2)), other), TransactionConflictException.class);
        other.abort().get();
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic);
        expect(again, "b"); // the refused command took none of its messages
        expectNothing(again);
    }

    private static void cumulativeCommit(Topics topics) throws Exception {
        String topic = topics.name("cumulative");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(topics.producer(topic), "a", "b", "c", "d");
        List<Message<String>> messages = expect(consumer, "a", "b", "c", "d");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeCumulativeAsync(id(messages, 0), txn).get();
        consumer.acknowledgeCumulativeAsync(id(messages, 2), txn).get();
        txn.commit().get();
        consumer.close();
        Consumer<String> again = topics.consumer(topic, SubscriptionType.Exclusive);
        expect(again, "d");
        expectNothing(again);
    }

    private static void cumulativeAbort(Topics topics) throws Exception {
        String topic = topics.name("cumulative-abort");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Failover);
        send(topics.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeCumulativeAsync(id(messages, 1), txn).get();
        consumer.close();
        Consumer<String> next = topics.consumer(topic, SubscriptionType.Failover);
        expect(next, "c"); // pending ones hide
        txn.abort().get();
        next.close();
        Consumer<String> last = topics.consumer(topic, SubscriptionType.Failover);
        expect(last, "a", "b", "c");
        expectNothing(last);
    }

    private static void conflict(Topics topics) throws Exception {
        String topic = topics.name("conflict");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "m");
        MessageId id = id(expect(consumer, "m"), 0);
        Transaction first = topics.begin(LONG);
        Transaction second = topics.begin(LONG);
        consumer.acknowledgeAsync(id, first).get();
        refused(consumer.acknowledgeAsync(id, second), TransactionConflictException.class);
        refused(second.commit(), TransactionHasOperationFailedException.class);
        first.commit().get();
        Transaction third = topics.begin(LONG);
        refused(consumer.acknowledgeAsync(id, third), TransactionConflictException.class);
        third.abort().get();
        consumer.redeliverUnacknowledgedMessages();
        expectNothing(consumer);
    }

    private static void cumulativeConflict(Topics topics) throws Exception {
        String topic = topics.name("cumulative-conflict");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(topics.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        Transaction first = topics.begin(LONG);
        Transaction second = topics.begin(LONG);
        consumer.acknowledgeCumulativeAsync(id(messages, 0), first).get();
        refused(consumer.acknowledgeCumulativeAsync(id(messages, 1), second), TransactionConflictException.class);
        second.abort().get();
        first.commit().get();
        Transaction third = topics.begin(LONG);
        consumer.acknowledgeCumulativeAsync(id(messages, 2), third).get();
        third.commit().get();
    }

    private static void twice(Topics topics) throws Exception {
        String topic = topics.name("twice");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "m");
        MessageId id = id(expect(consumer, "m"), 0);
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id, txn).get();
        refused(consumer.acknowledgeAsync(id, txn), TransactionConflictException.class);
        refused(txn.commit(), TransactionHasOperationFailedException.class);
        expect(consumer, "m"); // the client has aborted instead
    }

    private static void plainOverPending(Topics topics) throws Exception {
        String topic = topics.name("plain-over-pending");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "m");
        MessageId id = id(expect(consumer, "m"), 0);
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(id, txn).get();
        consumer.acknowledge(id);
        txn.abort().get();
        expectNothing(consumer);
        consumer.close();
        expectNothing(topics.consumer(topic));
    }

    private static void pendingOverKill(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn();
        String topic = own.name("pending-over-kill");
        Consumer<String> consumer = own.consumer(topic);
        send(own.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        Transaction committed = own.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 0), committed).get();
        Transaction aborted = own.begin(LONG);
        consumer.acknowledgeAsync(id(messages, 1), aborted).get();
        own.server.restart();
        expect(consumer, "c");
        expectNothing(consumer);
        committed.commit().get();
        aborted.abort().get();
        expect(consumer, "b");
        expectNothing(consumer);
    }

    private static MessageId id(List<Message<String>> messages, int i) {
        return messages.get(i).getMessageId();
    }

    private Acknowledge() {
    }
}
