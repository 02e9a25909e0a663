package transactions;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.InvalidTxnStatusException;

/** Moves messages from one topic to the next, some in each transaction, and aborts one transaction in five. */
final class Worker extends Thread {
    private static final int MOST = 7;
    private static final int RECEIVE_MILLIS = 100;
    /** Of a transaction whose end was not answered: longer than a restart of the server. */
    private static final long TRANSACTION_MILLIS = 10_000;

    private final PulsarClient client;
    private final Consumer<String> input;
    private final Producer<String> output;
    private final Random random;
    private volatile boolean finished;
    private volatile Exception failure;

    Worker(Topics topics, String from, String to, boolean batched, int seed) throws PulsarClientException {
        super("worker " + seed);
        client = topics.client;
        input = topics.consumer(from);
        output = batched ? topics.newProducer(to).enableBatching(true).batchingMaxPublishDelay(1, TimeUnit.MILLISECONDS).create()
                : topics.producer(to);
        random = new Random(seed);
    }

    /** Lets the worker end with the transaction that it is in. */
    void finish() {
        finished = true;
    }

    void rethrow() throws Exception {
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void run() {
        try {
            while (!finished) {
                List<Message<String>> messages = receive();
                if (!messages.isEmpty()) {
                    move(messages);
                }
            }
            input.close();
            output.close();
        } catch (Exception e) {
            failure = e;
        }
    }

    private List<Message<String>> receive() throws PulsarClientException {
        List<Message<String>> messages = new ArrayList<>();
        int want = 1 + random.nextInt(MOST);
        while (messages.size() < want) {
            Message<String> message = input.receive(RECEIVE_MILLIS, TimeUnit.MILLISECONDS);
            if (message == null) {
                break;
            }
            messages.add(message);
        }
        return messages;
    }

    /**
     * Moves the messages in one transaction. If an operation fails, as one does for a message that came again over a restart
     * and is pending already, the transaction is aborted: what it acknowledged comes again, and the rest is asked for.
     */
    private void move(List<Message<String>> messages) throws Exception {
        Transaction txn = Topics.begin(client, TRANSACTION_MILLIS);
        List<CompletableFuture<MessageId>> sends = new ArrayList<>();
        List<CompletableFuture<Void>> acknowledgements = new ArrayList<>();
        for (Message<String> message : messages) {
            sends.add(output.newMessage(txn).value(message.getValue()).sendAsync());
            acknowledgements.add(input.acknowledgeAsync(message.getMessageId(), txn));
        }
        boolean failed = false;
        for (CompletableFuture<MessageId> send : sends) {
            failed |= fails(send);
        }
        for (int i = 0; i < messages.size(); i++) {
            if (fails(acknowledgements.get(i))) {
                failed = true;
                input.negativeAcknowledge(messages.get(i));
            }
        }
        end(txn, !failed && random.nextInt(5) > 0);
    }

    private static boolean fails(CompletableFuture<?> operation) throws InterruptedException {
        try {
            operation.get();
            return false;
        } catch (ExecutionException e) {
            return true;
        }
    }

    /** A transaction that its timeout has aborted is as good as one aborted here. */
    private static void end(Transaction txn, boolean commit) throws Exception {
        try {
            (commit ? txn.commit() : txn.abort()).get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof InvalidTxnStatusException)) {
                throw e;
            }
        }
    }
}
