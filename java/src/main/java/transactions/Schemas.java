package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Values with a schema, in transactions. */
final class Schemas {
    /** A value. Schemas are made of its public fields. */
    public static final class Order {
        public String product;
        public int pieces;
    }

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("JSON values, read as such and by AUTO_CONSUME", topics -> values(topics, "json", Schema.JSON(Order.class)));
        all.put("AVRO values, read as such and by AUTO_CONSUME", topics -> values(topics, "avro", Schema.AVRO(Order.class)));
        all.put("a producer with another schema is refused", Schemas::incompatible);
    }

    private static void values(Topics topics, String name, Schema<Order> schema) throws Exception {
        String topic = topics.name(name);
        Producer<Order> producer = topics.client.newProducer(schema).topic(topic).sendTimeout(0, TimeUnit.SECONDS).create();
        Consumer<Order> consumer = subscribe(topics, topic, "typed", schema);
        Consumer<GenericRecord> generic = subscribe(topics, topic, "generic", Schema.AUTO_CONSUME());
        Order order = new Order();
        order.product = "tea";
        order.pieces = 3;
        Transaction txn = topics.begin(LONG);
        producer.newMessage(txn).value(order).send();
        txn.commit().get();
        Order received = receive(consumer).getValue();
        check(received.product.equals("tea") && received.pieces == 3, "received " + received.product + ", " + received.pieces);
        GenericRecord record = receive(generic).getValue();
        check(record.getField("product").toString().equals("tea"), "read " + record.getField("product"));
    }

    private static <T> Consumer<T> subscribe(Topics topics, String topic, String subscription, Schema<T> schema) throws Exception {
        return topics.client.newConsumer(schema).topic(topic).subscriptionName(subscription)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    private static <T> Message<T> receive(Consumer<T> consumer) throws Exception {
        Message<T> message = consumer.receive(10, TimeUnit.SECONDS);
        check(message != null, "nothing received");
        return message;
    }

    private static void incompatible(Topics topics) throws Exception {
        String topic = topics.name("incompatible");
        topics.client.newProducer(Schema.AVRO(Order.class)).topic(topic).create();
        Topics.refused(topics.client.newProducer(Schema.INT64).topic(topic).createAsync(),
                PulsarClientException.IncompatibleSchemaException.class);
    }

    private Schemas() {
    }
}
