package transactions;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClient;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import server.Server;

/**
 * What one scenario works with: a server, a client, and names of topics that no other scenario uses. Everything that a
 * scenario opens is closed with it.
 */
final class Topics implements AutoCloseable {
    /** Milliseconds of a transaction that is not meant to time out. */
    static final long LONG = 60_000;

    private static final int QUIET_MILLIS = 300;
    private static final int WAIT_SECONDS = 15;

    final Server server;
    final PulsarClient client;
    private final Path binary;
    private final Path scratch;
    private final String run = UUID.randomUUID().toString();
    private final List<AutoCloseable> opened = new ArrayList<>();

    Topics(Server server, Path binary, Path scratch) throws PulsarClientException {
        this.server = server;
        this.binary = binary;
        this.scratch = scratch;
        this.client = newClient();
    }

    /** The same on a server that only this scenario has, and may kill. */
    Topics onServerOfItsOwn(String... settings) throws Exception {
        Server own = new Server(binary, Files.createTempDirectory(scratch, "server"), settings);
        opened.add(own);
        Topics topics = new Topics(own, binary, scratch);
        opened.add(topics);
        return topics;
    }

    PulsarClient newClient() throws PulsarClientException {
        PulsarClient made = PulsarClient.builder().serviceUrl(server.serviceUrl()).enableTransaction(true)
                .build();
        opened.add(made::closeAsync); // its threads take two seconds to end, for which nobody needs to wait
        return made;
    }

    /** The coordinator of a client that knows no transaction. */
    TransactionCoordinatorClient otherCoordinator() throws PulsarClientException {
        return coordinator(newClient());
    }

    static TransactionCoordinatorClient coordinator(PulsarClient client) {
        return ((PulsarClientImpl) client).getTcClient();
    }

    String name(String part) {
        return "persistent://public/default/java-" + run + "-" + part;
    }

    ProducerBuilder<String> newProducer(String topic) {
        return client.newProducer(Schema.STRING).topic(topic).enableBatching(false).sendTimeout(0, TimeUnit.SECONDS);
    }

    /** A producer without batching and without send timeout, which transactions demand. */
    Producer<String> producer(String topic) throws PulsarClientException {
        return newProducer(topic).create();
    }

    /** A producer whose batches end with flush and never before. */
    Producer<String> batching(String topic) throws PulsarClientException {
        return newProducer(topic).enableBatching(true).batchingMaxMessages(1000)
                .batchingMaxPublishDelay(1, TimeUnit.HOURS).create();
    }

    ConsumerBuilder<String> newConsumer(String topic, SubscriptionType type) {
        return client.newConsumer(Schema.STRING).topic(topic).subscriptionName("s").subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).isAckReceiptEnabled(true)
                .enableBatchIndexAcknowledgment(true).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS);
    }

    /** A consumer of subscription "s", made at the earliest message. */
    Consumer<String> consumer(String topic, SubscriptionType type) throws PulsarClientException {
        return newConsumer(topic, type).subscribe();
    }

    Consumer<String> consumer(String topic) throws PulsarClientException {
        return consumer(topic, SubscriptionType.Shared);
    }

    Reader<String> reader(String topic) throws PulsarClientException {
        return client.newReader(Schema.STRING).topic(topic).startMessageId(MessageId.earliest).create();
    }

    Transaction begin(long timeoutMillis) throws Exception {
        return begin(client, timeoutMillis);
    }

    static Transaction begin(PulsarClient client, long timeoutMillis) throws Exception {
        return client.newTransaction().withTransactionTimeout(timeoutMillis, TimeUnit.MILLISECONDS).build().get();
    }

    static void send(Producer<String> producer, Transaction txn, String... values) throws PulsarClientException {
        for (String value : values) {
            producer.newMessage(txn).value(value).send();
        }
    }

    static void send(Producer<String> producer, String... values) throws PulsarClientException {
        for (String value : values) {
            producer.send(value);
        }
    }

    /** Sends one batch through a producer made by {@link #batching}. */
    static void sendBatch(Producer<String> producer, String... values) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producer.sendAsync(value));
        }
        producer.flush();
        for (CompletableFuture<MessageId> one : sent) {
            one.get();
        }
    }

    static Message<String> receive(Consumer<String> consumer) throws PulsarClientException {
        return consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
    }

    /** Receives as many messages as there are values, in this order. */
    static List<Message<String>> expect(Consumer<String> consumer, String... values) throws PulsarClientException {
        List<Message<String>> messages = new ArrayList<>();
        for (String value : values) {
            Message<String> message = receive(consumer);
            check(message != null, "nothing received, want " + value);
            check(value.equals(message.getValue()), "received " + message.getValue() + ", want " + value);
            messages.add(message);
        }
        return messages;
    }

    static void expectNothing(Consumer<String> consumer) throws PulsarClientException {
        Message<String> message = consumer.receive(QUIET_MILLIS, TimeUnit.MILLISECONDS);
        check(message == null, "received " + (message == null ? "" : message.getValue()) + ", want nothing");
    }

    /** Reads on until the reader says that there is no more, which must be after these values. */
    static void expectRead(Reader<String> reader, String... values) throws PulsarClientException {
        List<String> read = new ArrayList<>();
        while (reader.hasMessageAvailable()) {
            Message<String> message = reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS);
            check(message != null, "a message is available, and none comes behind " + read);
            read.add(message.getValue());
        }
        check(read.equals(List.of(values)), "read " + read + ", want " + List.of(values));
    }

    /** Checks that the answer is an error of this kind. */
    static void refused(CompletableFuture<?> answer, Class<? extends Throwable> kind) throws Exception {
        try {
            answer.get(WAIT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            check(kind.isInstance(e.getCause()), "refused with " + e.getCause() + ", want " + kind.getSimpleName());
            return;
        }
        throw new AssertionError("accepted, want " + kind.getSimpleName());
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    @Override
    public void close() throws Exception {
        for (int i = opened.size() - 1; i >= 0; i--) {
            opened.get(i).close();
        }
    }
}
