package load;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * Transactions of one message each, from one producer without batching to one topic, so many in flight. A line
 * "WARM_UP_MILLIS MEASURED_MILLIS" on standard input lets it run once; it answers with a line "TRANSACTIONS MICROSECONDS", or
 * "failed: REASON", and waits for the next. It ends with its input.
 */
public final class TransactionalSends {
    private static final int PAYLOAD_BYTES = 100;
    private static final String TOPIC = "persistent://public/default/transactional-sends";
    private static final byte[] PAYLOAD = new byte[PAYLOAD_BYTES];

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: load.TransactionalSends pulsar://HOST:PORT IN_FLIGHT");
            System.exit(2);
        }
        int inFlight = Integer.parseInt(args[1]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).enableTransaction(true).build();
             Producer<byte[]> producer = client.newProducer().topic(TOPIC).enableBatching(false)
                     .sendTimeout(0, TimeUnit.SECONDS).create();
             BufferedReader turns = new BufferedReader(new InputStreamReader(System.in))) {
            for (String turn = turns.readLine(); turn != null; turn = turns.readLine()) {
                String[] millis = turn.split(" ");
                System.out.println(new Turn(client, producer).run(inFlight, Long.parseLong(millis[0]), Long.parseLong(millis[1])));
            }
        }
        System.exit(0);
    }

    /** One run of the load: as many loops as transactions in flight. */
    private static final class Turn {
        private final PulsarClient client;
        private final Producer<byte[]> producer;
        private final AtomicLong committed = new AtomicLong();
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private volatile boolean stopped;

        Turn(PulsarClient client, Producer<byte[]> producer) {
            this.client = client;
            this.producer = producer;
        }

        String run(int inFlight, long warmUpMillis, long measuredMillis) throws InterruptedException {
            CompletableFuture<?>[] loops = new CompletableFuture<?>[inFlight];
            for (int i = 0; i < inFlight; i++) {
                CompletableFuture<Void> loop = new CompletableFuture<>();
                loops[i] = loop;
                next(loop);
            }
            Thread.sleep(warmUpMillis);
            long before = committed.get();
            long start = System.nanoTime();
            Thread.sleep(measuredMillis);
            long count = committed.get() - before;
            long micros = (System.nanoTime() - start) / 1000;
            stopped = true;
            CompletableFuture.allOf(loops).join();
            return failure.get() == null ? count + " " + micros : "failed: " + failure.get();
        }

        /** Runs one transaction after the other until the turn ends. */
        private void next(CompletableFuture<Void> loop) {
            if (stopped || failure.get() != null) {
                loop.complete(null);
                return;
            }
            client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build()
                    .thenCompose(txn -> producer.newMessage(txn).value(PAYLOAD).sendAsync().thenCompose(id -> txn.commit()))
                    .whenComplete((done, error) -> {
                        if (error != null) {
                            failure.compareAndSet(null, error);
                        } else {
                            committed.incrementAndGet();
                        }
                        next(loop);
                    });
        }
    }

    private TransactionalSends() {
    }
}
