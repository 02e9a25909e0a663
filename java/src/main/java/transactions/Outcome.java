package transactions;

import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.send;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClient;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException;
import org.apache.pulsar.client.api.transaction.TxnID;
import org.apache.pulsar.client.impl.PulsarClientImpl;

/** What the coordinator says of a transaction that has ended. */
final class Outcome {
    static void timeout(Topics topics) throws Exception {
        String topic = topics.name("timeout");
        try (Producer<String> producer = topics.producer(topic);
             Consumer<String> consumer = topics.consumer(topic, "s");
             PulsarClient other = otherClient(topics)) {
            Transaction txn = topics.begin(1_000);
            send(producer, txn, "too late");
            producer.send("plain");
            expect(consumer, "plain"); // visible once the deadline has aborted what stands before it
            expectNothing(consumer);
            refused(coordinator(other).commitAsync(txn.getTxnID()));
            coordinator(other).abortAsync(txn.getTxnID()).get();
        }
    }

    static void repeatedCommit(Topics topics) throws Exception {
        TxnID id = end(topics, "repeated-commit", true);
        try (PulsarClient other = otherClient(topics)) {
            coordinator(other).commitAsync(id).get();
            refused(coordinator(other).abortAsync(id));
            coordinator(other).commitAsync(id).get();
        }
    }

    static void repeatedAbort(Topics topics) throws Exception {
        TxnID id = end(topics, "repeated-abort", false);
        try (PulsarClient other = otherClient(topics)) {
            coordinator(other).abortAsync(id).get();
            refused(coordinator(other).commitAsync(id));
            coordinator(other).abortAsync(id).get();
        }
    }

    /** Ends a transaction that wrote one message, and shows that the message tells the same as the answer. */
    private static TxnID end(Topics topics, String name, boolean commit) throws Exception {
        try (Producer<String> producer = topics.producer(topics.name(name));
             Consumer<String> consumer = topics.consumer(topics.name(name), "s")) {
            Transaction txn = topics.begin(60_000);
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
    }

    private static PulsarClient otherClient(Topics topics) throws Exception {
        return PulsarClient.builder().serviceUrl(topics.serviceUrl).enableTransaction(true).build();
    }

    private static TransactionCoordinatorClient coordinator(PulsarClient client) {
        return ((PulsarClientImpl) client).getTcClient();
    }

    /** The contrary of an outcome is answered InvalidTxnStatus, never TransactionNotFound. */
    private static void refused(CompletableFuture<Void> end) throws Exception {
        try {
            end.get();
        } catch (ExecutionException e) {
            check(e.getCause() instanceof TransactionCoordinatorClientException.InvalidTxnStatusException,
                    "refused with " + e.getCause());
            return;
        }
        throw new AssertionError("the contrary of the outcome was accepted");
    }

    private Outcome() {
    }
}
