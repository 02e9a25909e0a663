package transactions;

import static transactions.Topics.check;
import static transactions.Topics.sendBatch;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;

/** Topics in a row, between which workers move each message in transactions: each input is in the last topic once. */
final class Transform {
    private static final int MESSAGES = 400;
    private static final int BATCH = 10;
    private static final int LIMIT_SECONDS = 50;
    private static final int KILLS = 2;

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("consume, transform, produce over three topics: each input exactly once", topics -> exactlyOnce(topics, false, 0));
        all.put("the same with batches and acknowledgements inside them", topics -> exactlyOnce(topics, true, 0));
        all.put("the same, and the server killed with -9", topics -> exactlyOnce(topics.onServerOfItsOwn(), false, KILLS));
        all.put("the same with batches, and the server killed with -9", topics -> exactlyOnce(topics.onServerOfItsOwn(), true, KILLS));
    }

    private static void exactlyOnce(Topics topics, boolean batched, int kills) throws Exception {
        List<String> row = List.of(topics.name("in"), topics.name("middle"), topics.name("out"));
        for (int i = 0; i < 2; i++) {
            topics.consumer(row.get(i)).close(); // so that the subscription is there before the messages
        }
        fill(topics, row.get(0), batched);
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            workers.add(new Worker(topics, row.get(i), row.get(i + 1), batched, i));
        }
        workers.forEach(Worker::start);
        Set<String> seen = new HashSet<>();
        try (Reader<String> reader = topics.reader(row.get(2))) {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
            for (int killed = 0; seen.size() < MESSAGES;) {
                if (killed < kills && seen.size() >= MESSAGES * (killed + 1) / (kills + 1)) {
                    topics.server.restart();
                    killed++;
                }
                check(System.nanoTime() < deadline, "only " + seen.size() + " of " + MESSAGES + " results");
                Message<String> message = reader.readNext(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    seen.add(message.getValue());
                }
            }
        } finally {
            workers.forEach(Worker::finish);
        }
        for (Worker worker : workers) {
            worker.join();
            worker.rethrow();
        }
        for (int i = 0; i < 2; i++) {
            Topics.expectNothing(topics.consumer(row.get(i)));
        }
        eachOnce(topics, row.get(2));
    }

    private static void fill(Topics topics, String topic, boolean batched) throws Exception {
        try (Producer<String> source = batched ? topics.batching(topic) : topics.producer(topic)) {
            for (int i = 0; i < MESSAGES; i += BATCH) {
                String[] values = new String[BATCH];
                for (int j = 0; j < BATCH; j++) {
                    values[j] = "m" + (i + j);
                }
                sendBatch(source, values);
            }
        }
    }

    private static void eachOnce(Topics topics, String topic) throws Exception {
        List<String> read = new ArrayList<>();
        try (Reader<String> reader = topics.reader(topic)) {
            while (reader.hasMessageAvailable()) {
                read.add(reader.readNext().getValue());
            }
        }
        check(new HashSet<>(read).size() == MESSAGES, new HashSet<>(read).size() + " different results, want " + MESSAGES);
        check(read.size() == MESSAGES, read.size() + " results, want " + MESSAGES + ": some came twice");
    }

    private Transform() {
    }
}
