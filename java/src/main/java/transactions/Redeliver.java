package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.send;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** What comes again, how often, and to whom. */
final class Redeliver {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a negative acknowledgement and its count", Redeliver::negative);
        all.put("an acknowledgement timeout", Redeliver::timeout);
        all.put("what an Exclusive consumer asks for again", Redeliver::exclusive);
        all.put("aborts count for a dead letter policy", Redeliver::deadLetter);
        all.put("Failover: the next consumer goes on", Redeliver::failover);
        all.put("Key_Shared: each key to one consumer, each message committed once, over aborts", Redeliver::keyShared);
    }

    private static void negative(Topics topics) throws Exception {
        String topic = topics.name("negative");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "a", "b");
        List<Message<String>> messages = expect(consumer, "a", "b");
        for (int count = 1; count <= 3; count++) {
            consumer.negativeAcknowledge(messages.get(0));
            messages = expect(consumer, "a");
            check(messages.get(0).getRedeliveryCount() == count, "redelivery count " + messages.get(0).getRedeliveryCount() + ", want " + count);
        }
        expectNothing(consumer);
    }

    private static void timeout(Topics topics) throws Exception {
        String topic = topics.name("ack-timeout");
        Consumer<String> consumer = topics.newConsumer(topic, SubscriptionType.Shared)
                .ackTimeout(1, TimeUnit.SECONDS).ackTimeoutTickTime(100, TimeUnit.MILLISECONDS).subscribe();
        send(topics.producer(topic), "a", "b");
        consumer.acknowledge(expect(consumer, "a", "b").get(0));
        consumer.acknowledge(expect(consumer, "b").get(0));
        expectNothing(consumer);
    }

    private static void exclusive(Topics topics) throws Exception {
        String topic = topics.name("again-exclusive");
        Consumer<String> consumer = topics.consumer(topic, SubscriptionType.Exclusive);
        send(topics.producer(topic), "a", "b", "c");
        List<Message<String>> messages = expect(consumer, "a", "b", "c");
        consumer.acknowledge(messages.get(1));
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(messages.get(2).getMessageId(), txn).get();
        consumer.redeliverUnacknowledgedMessages();
        expect(consumer, "a");
        expectNothing(consumer);
        txn.abort().get();
        expect(consumer, "c");
    }

    private static void deadLetter(Topics topics) throws Exception {
        String topic = topics.name("dead");
        String letters = topics.name("letters");
        Consumer<String> dead = topics.consumer(letters);
        Consumer<String> consumer = topics.newConsumer(topic, SubscriptionType.Shared).deadLetterPolicy(
                DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(letters).build()).subscribe();
        send(topics.producer(topic), "m");
        for (int i = 0; i < 3; i++) {
            Transaction txn = topics.begin(LONG);
            consumer.acknowledgeAsync(expect(consumer, "m").get(0).getMessageId(), txn).get();
            txn.abort().get();
        }
        expectNothing(consumer);
        expect(dead, "m");
    }

    private static void failover(Topics topics) throws Exception {
        String topic = topics.name("failover");
        Set<Consumer<String>> active = ConcurrentHashMap.newKeySet();
        ConsumerEventListener listener = new ConsumerEventListener() {
            @Override
            @SuppressWarnings("unchecked")
            public void becameActive(Consumer<?> consumer, int partition) {
                active.add((Consumer<String>) consumer);
            }

            @Override
            public void becameInactive(Consumer<?> consumer, int partition) {
                active.remove(consumer);
            }
        };
        Consumer<String> one = topics.newConsumer(topic, SubscriptionType.Failover).consumerEventListener(listener).subscribe();
        Consumer<String> two = topics.newConsumer(topic, SubscriptionType.Failover).consumerEventListener(listener).subscribe();
        send(topics.producer(topic), "a", "b", "c");
        Consumer<String> first = active.contains(one) ? one : two;
        Consumer<String> second = first == one ? two : one;
        List<Message<String>> messages = expect(first, "a", "b", "c");
        expectNothing(second);
        Transaction committed = topics.begin(LONG);
        first.acknowledgeAsync(messages.get(0).getMessageId(), committed).get();
        Transaction open = topics.begin(LONG);
        first.acknowledgeAsync(messages.get(1).getMessageId(), open).get();
        committed.commit().get();
        first.close();
        expect(second, "c");
        check(active.contains(second), "the consumer that is left was not told that it is active");
        open.abort().get();
        expect(second, "b");
        expectNothing(second);
    }

    private static void keyShared(Topics topics) throws Exception {
        final int keys = 12;
        final int each = 5;
        String topic = topics.name("key-shared");
        List<Consumer<String>> consumers = List.of(topics.consumer(topic, SubscriptionType.Key_Shared),
                topics.consumer(topic, SubscriptionType.Key_Shared));
        Producer<String> producer = topics.producer(topic);
        for (int i = 0; i < keys * each; i++) {
            producer.newMessage().key("k" + i % keys).value("k" + i % keys + ":" + i / keys).send();
        }
        Map<String, List<String>> committed = new HashMap<>();
        Map<String, Set<Consumer<String>>> owners = new HashMap<>();
        int count = 0;
        for (int attempt = 0; count < keys * each; attempt++) {
            check(attempt < 10 * keys * each, "only " + count + " messages after " + attempt + " attempts");
            Consumer<String> consumer = consumers.get(attempt % 2);
            Message<String> message = consumer.receive(20, TimeUnit.MILLISECONDS);
            if (message == null) {
                continue;
            }
            owners.computeIfAbsent(message.getKey(), key -> new HashSet<>()).add(consumer);
            Transaction txn = topics.begin(LONG);
            consumer.acknowledgeAsync(message.getMessageId(), txn).get();
            if (message.getRedeliveryCount() == 0 && attempt % 5 == 0) {
                txn.abort().get();
                continue;
            }
            txn.commit().get();
            committed.computeIfAbsent(message.getKey(), key -> new ArrayList<>()).add(message.getValue());
            count++;
        }
        for (Map.Entry<String, List<String>> key : committed.entrySet()) {
            check(new HashSet<>(key.getValue()).size() == each, key.getKey() + " had " + key.getValue());
            check(owners.get(key.getKey()).size() == 1, key.getKey() + " went to two consumers");
        }
        check(owners.values().stream().distinct().count() == 2, "one consumer had every key");
        for (Consumer<String> consumer : consumers) {
            expectNothing(consumer);
        }
    }

    private Redeliver() {
    }
}
