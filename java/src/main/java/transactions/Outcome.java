package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.coordinator;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.refused;
import static transactions.Topics.send;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClient;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.InvalidTxnStatusException;
import org.apache.pulsar.client.api.transaction.TxnID;

/** What the coordinator says of a transaction that has ended. */
final class Outcome {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a timeout aborts, and the outcome says so", Outcome::timeout);
        all.put("a timeout gives acknowledgements back", Outcome::timeoutOfAcknowledgement);
        all.put("a second client repeats a commit", Outcome::repeatedCommit);
        all.put("a second client repeats an abort", Outcome::repeatedAbort);
        all.put("a commit behind another client's commit succeeds", Outcome::commitBehindAnother);
        all.put("two commits at once of one transaction both succeed", Outcome::commitsAtOnce);
        all.put("a commit that a dying server has read is answered by the next", Outcome::commitOverKill);
    }

    private static void timeout(Topics topics) throws Exception {
        String topic = topics.name("timeout");
        Producer<String> producer = topics.producer(topic);
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(5_000);
        send(producer, txn, "too late");
        send(producer, "plain");
        expect(consumer, "plain"); // visible once the deadline has aborted what stands before it
        expectNothing(consumer);
        TransactionCoordinatorClient other = topics.otherCoordinator();
        refused(other.commitAsync(txn.getTxnID()), InvalidTxnStatusException.class);
        other.abortAsync(txn.getTxnID()).get();
    }

    private static void timeoutOfAcknowledgement(Topics topics) throws Exception {
        String topic = topics.name("timeout-ack");
        send(topics.producer(topic), "m");
        Consumer<String> consumer = topics.consumer(topic);
        Transaction txn = topics.begin(5_000);
        consumer.acknowledgeAsync(expect(consumer, "m").get(0).getMessageId(), txn).get();
        expect(consumer, "m");
    }

    private static void repeatedCommit(Topics topics) throws Exception {
        TxnID id = end(topics, "repeated-commit", true);
        TransactionCoordinatorClient other = topics.otherCoordinator();
        other.commitAsync(id).get();
        refused(other.abortAsync(id), InvalidTxnStatusException.class);
        other.commitAsync(id).get();
    }

    private static void repeatedAbort(Topics topics) throws Exception {
        TxnID id = end(topics, "repeated-abort", false);
        TransactionCoordinatorClient other = topics.otherCoordinator();
        other.abortAsync(id).get();
        refused(other.commitAsync(id), InvalidTxnStatusException.class);
        other.abortAsync(id).get();
    }

    /** Ends a transaction that wrote one message, and shows that the message tells the same as the answer. */
    private static TxnID end(Topics topics, String name, boolean commit) throws Exception {
        Producer<String> producer = topics.producer(topics.name(name));
        Consumer<String> consumer = topics.consumer(topics.name(name));
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "m");
        if (commit) {
            txn.commit().get();
            expect(consumer, "m");
        } else {
            txn.abort().get();
        }
        expectNothing(consumer);
        return txn.getTxnID();
    }

    private static void commitBehindAnother(Topics topics) throws Exception {
        Producer<String> producer = topics.producer(topics.name("behind"));
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "m");
        topics.otherCoordinator().commitAsync(txn.getTxnID()).get();
        txn.commit().get();
    }

    private static void commitsAtOnce(Topics topics) throws Exception {
        Producer<String> producer = topics.producer(topics.name("at-once"));
        TransactionCoordinatorClient other = topics.otherCoordinator();
        for (int i = 0; i < 20; i++) {
            Transaction txn = topics.begin(LONG);
            send(producer, txn, "m");
            CompletableFuture<Void> first = coordinator(topics.client).commitAsync(txn.getTxnID());
            CompletableFuture<Void> second = other.commitAsync(txn.getTxnID());
            first.get();
            second.get();
        }
    }

    private static void commitOverKill(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn();
        String topic = own.name("over-kill");
        Producer<String> producer = own.producer(topic);
        for (int i = 0; i < 3; i++) {
            Transaction txn = own.begin(LONG);
            send(producer, txn, "m" + i);
            CompletableFuture<Void> commit = txn.commit();
            own.server.restart();
            try {
                commit.get();
            } catch (ExecutionException e) {
                check(false, "the commit failed with " + e.getCause());
            }
        }
        Consumer<String> consumer = own.consumer(topic);
        expect(consumer, "m0", "m1", "m2");
        expectNothing(consumer);
    }

    private Outcome() {
    }
}
