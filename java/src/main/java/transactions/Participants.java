package transactions;

import static transactions.Topics.LONG;
import static transactions.Topics.check;
import static transactions.Topics.expect;
import static transactions.Topics.expectNothing;
import static transactions.Topics.send;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Topics and subscriptions that take part in a transaction: several partitions, gone ones, and the names that clients list. */
final class Participants {
    static void addTo(Map<String, Main.Scenario> all) {
        all.put("a partitioned topic", Participants::partitions);
        all.put("a subscription that is gone does not stop a commit", Participants::unsubscribed);
        all.put("a deleted topic does not stop a commit", Participants::deleted);
        all.put("a pattern consumer hears of the topics of applications alone", Participants::pattern);
    }

    private static void partitions(Topics topics) throws Exception {
        Topics own = topics.onServerOfItsOwn("allowAutoTopicCreationType=partitioned", "defaultNumPartitions=3");
        String topic = own.name("partitioned");
        Producer<String> producer = own.producer(topic);
        check(own.client.getPartitionsForTopic(topic).get().size() == 3, "not three partitions");
        Consumer<String> consumer = own.consumer(topic);
        Transaction aborted = own.begin(LONG);
        send(producer, aborted, "x", "y", "z");
        aborted.abort().get();
        Transaction committed = own.begin(LONG);
        send(producer, committed, "a", "b", "c", "d", "e", "f");
        expectNothing(consumer);
        committed.commit().get();
        Set<String> values = new HashSet<>();
        Transaction acknowledging = own.begin(LONG);
        for (int i = 0; i < 6; i++) {
            Message<String> message = Topics.receive(consumer);
            check(message != null, "only " + values);
            values.add(message.getValue());
            consumer.acknowledgeAsync(message.getMessageId(), acknowledging).get();
        }
        check(values.equals(Set.of("a", "b", "c", "d", "e", "f")), "received " + values);
        acknowledging.commit().get();
        consumer.redeliverUnacknowledgedMessages();
        expectNothing(consumer);
    }

    private static void unsubscribed(Topics topics) throws Exception {
        String topic = topics.name("unsubscribed");
        String other = topics.name("unsubscribed-other");
        Consumer<String> consumer = topics.consumer(topic);
        send(topics.producer(topic), "m");
        Transaction txn = topics.begin(LONG);
        consumer.acknowledgeAsync(expect(consumer, "m").get(0).getMessageId(), txn).get();
        send(topics.producer(other), txn, "other");
        consumer.unsubscribe();
        txn.commit().get();
        expect(topics.consumer(other), "other");
    }

    private static void deleted(Topics topics) throws Exception {
        String topic = topics.name("deleted");
        String other = topics.name("deleted-other");
        Producer<String> producer = topics.producer(topic);
        Transaction txn = topics.begin(LONG);
        send(producer, txn, "m");
        send(topics.producer(other), txn, "other");
        producer.close();
        admin(topics, "DELETE", path(topic) + "?force=true", "");
        txn.commit().get();
        expect(topics.consumer(other), "other");
    }

    /** Pulsar tells such a consumer of the system topics of pending acknowledgements. It watches short patterns and polls long ones. */
    private static void pattern(Topics topics) throws Exception {
        String run = topics.name("").substring("persistent://public/default/java-".length());
        for (String prefix : new String[] {"persistent://public/default/" + run.substring(0, 8), topics.name("pattern")}) {
            Consumer<String> consumer = topics.client.newConsumer(Schema.STRING).topicsPattern(Pattern.compile(prefix + ".*"))
                    .subscriptionName("pattern").subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                    .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscribe();
            Consumer<String> pending = topics.consumer(prefix + "-1");
            send(topics.producer(prefix + "-1"), "a");
            Transaction txn = topics.begin(LONG);
            pending.acknowledgeAsync(expect(pending, "a").get(0).getMessageId(), txn).get();
            expect(consumer, "a");
            send(topics.producer(prefix + "-2"), "b");
            expect(consumer, "b");
            txn.commit().get();
            expectNothing(consumer);
            check(consumer.isConnected(), "refused a topic");
        }
    }

    private static String path(String topic) {
        return "/admin/v2/" + topic.replace("://", "/");
    }

    private static void admin(Topics topics, String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(topics.server.webUrl() + path))
                .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        check(response.statusCode() / 100 == 2, method + " " + path + ": " + response.statusCode() + " " + response.body());
    }

    private Participants() {
    }
}
