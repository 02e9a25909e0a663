package transactions;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** The client of one scenario and names of topics that no other scenario uses. */
final class Topics {
    final PulsarClient client;
    final String serviceUrl;
    private final String run = UUID.randomUUID().toString();

    Topics(PulsarClient client, String serviceUrl) {
        this.client = client;
        this.serviceUrl = serviceUrl;
    }

    String name(String part) {
        return "persistent://public/default/java-" + run + "-" + part;
    }

    /** A producer without batching and without send timeout, which transactions demand. */
    Producer<String> producer(String topic) throws PulsarClientException {
        return client.newProducer(Schema.STRING).topic(topic).enableBatching(false).sendTimeout(0, TimeUnit.SECONDS).create();
    }

    /** A consumer from the earliest message on. */
    Consumer<String> consumer(String topic, String subscription) throws PulsarClientException {
        return client.newConsumer(Schema.STRING).topic(topic).subscriptionName(subscription)
                .subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .enableBatchIndexAcknowledgment(true).subscribe();
    }

    Transaction begin(long timeoutMillis) throws Exception {
        return client.newTransaction().withTransactionTimeout(timeoutMillis, TimeUnit.MILLISECONDS).build().get();
    }

    static void send(Producer<String> producer, Transaction txn, String... values) throws PulsarClientException {
        for (String value : values) {
            producer.newMessage(txn).value(value).send();
        }
    }

    /** Receives as many messages as there are values, in this order. */
    static List<Message<String>> expect(Consumer<String> consumer, String... values) throws PulsarClientException {
        List<Message<String>> messages = new ArrayList<>();
        for (String value : values) {
            Message<String> message = consumer.receive(10, TimeUnit.SECONDS);
            check(message != null, "nothing received, want " + value);
            check(value.equals(message.getValue()), "received " + message.getValue() + ", want " + value);
            messages.add(message);
        }
        return messages;
    }

    static void expectNothing(Consumer<String> consumer) throws PulsarClientException {
        Message<String> message = consumer.receive(500, TimeUnit.MILLISECONDS);
        check(message == null, "received " + (message == null ? "" : message.getValue()) + ", want nothing");
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
